"""The log pane's machinery: cached lines, background scans, the view that draws them."""
