// Package faults makes requests go wrong on demand: the nth call of a method or
// a share of all calls is refused, cut off before or after it took effect,
// answered late, never, or with what was true before. A Set holds the rules; it
// wraps the fake GKE API as an http.Handler, and a Proxy puts it into the path
// to a kube-apiserver. Whoever drives a test can also be told of every call and
// cut it off at a stage of its choice.
//
// The package works on HTTP alone: it names methods and speaks each API's form
// of an error, and knows neither the fake behind it nor the client before it.
package faults
