"""Planning: Intent + Fleet + Facts -> Plans or the reasons why there is none. One file a kind of change."""
