"""discreet: differentially private statistical inference."""
from discreet.accounting import GDP, ApproxDP, PureDP
from discreet.neighbors import AddRemove, Replace
