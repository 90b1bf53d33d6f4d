// Package fakegke is the GKE API in one process: the ClusterManager service
// over gRPC and over REST, on one port, strict enough that a client which
// works here works against Google's.
//
// It is faithful about what clients trip over: operations that take time and
// exclude each other, the quota of concurrent operations, defaults the service
// fills in, what it refuses and in which words, pools that end in ERROR, and
// nodes that carry GKE's labels, capacity and taint. Durations are GKE's,
// multiplied by a scale (WithTimeScale), so that six minutes can pass in
// milliseconds.
//
// A second, small face is Compute Engine's: the regional resource policies that
// place slices, under /compute/v1/ on the same port.
//
// A control plane's upgrade changes the version that the API reports, and the
// rules that follow from it. The API server behind a cluster goes on as it is:
// there is one Kubernetes version to run, and no restart.
//
// Clusters are real only when a ControlPlanes is given; otherwise nodes are
// kept in memory and an endpoint leads nowhere. The package knows nothing of
// Terraform, of this project's GKE client, or of how a control plane runs.
package fakegke
