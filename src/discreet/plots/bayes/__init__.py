"""Pictures of posteriors."""
