"""Views to text: pure functions from a frozen view (and a width, and the time) to what a pane draws."""
