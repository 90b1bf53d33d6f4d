package training

// Brief is the listing of many runs, however few there are.
var Brief = brief

// Sorted is the order of listings.
var Sorted = sorted
