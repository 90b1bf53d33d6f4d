package fakegke

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// permissions are the IAM permissions that the methods need. Node pools have
// none of their own: they are parts of their cluster.
var permissions = map[string]string{
	"ListClusters": "container.clusters.list", "GetServerConfig": "container.clusters.list",
	"GetCluster": "container.clusters.get", "ListNodePools": "container.clusters.get", "GetNodePool": "container.clusters.get",
	"CreateCluster": "container.clusters.create", "DeleteCluster": "container.clusters.delete",
	"UpdateCluster": "container.clusters.update", "UpdateMaster": "container.clusters.update", "SetLabels": "container.clusters.update",
	"SetMaintenancePolicy": "container.clusters.update", "SetLocations": "container.clusters.update", "SetAddonsConfig": "container.clusters.update",
	"SetLoggingService": "container.clusters.update", "SetMonitoringService": "container.clusters.update", "SetNetworkPolicy": "container.clusters.update",
	"CreateNodePool": "container.clusters.update", "UpdateNodePool": "container.clusters.update", "DeleteNodePool": "container.clusters.update",
	"SetNodePoolSize": "container.clusters.update", "SetNodePoolManagement": "container.clusters.update", "SetNodePoolAutoscaling": "container.clusters.update",
	"ListOperations": "container.operations.list", "GetOperation": "container.operations.get", "CancelOperation": "container.clusters.update",

	"ListResourcePolicies": "compute.resourcePolicies.list", "GetResourcePolicy": "compute.resourcePolicies.get",
	"InsertResourcePolicy": "compute.resourcePolicies.create", "DeleteResourcePolicy": "compute.resourcePolicies.delete",
	"GetRegionOperation": "compute.regionOperations.get", "WaitRegionOperation": "compute.regionOperations.get",
}

// The services that can be disabled, and what Google calls them.
const (
	ContainerAPI = "container.googleapis.com"
	ComputeAPI   = "compute.googleapis.com"
)

var titles = map[string]string{ContainerAPI: "Kubernetes Engine API", ComputeAPI: "Compute Engine API"}

// access is what callers may not do.
type access struct {
	denied   []string // permissions
	disabled []string // services
}

// Deny takes IAM permissions ("container.clusters.create") from every caller,
// and returns what gives them back.
func (s *Server) Deny(permissions ...string) (allow func()) {
	return s.take(&s.access.denied, permissions)
}

// Disable switches services off (ContainerAPI, ComputeAPI), as in a project
// that never enabled them, and returns what enables them.
func (s *Server) Disable(services ...string) (enable func()) {
	return s.take(&s.access.disabled, services)
}

func (s *Server) take(from *[]string, names []string) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*from = append(*from, names...)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range names {
			if i := slices.Index(*from, name); i >= 0 {
				*from = slices.Delete(slices.Clone(*from), i, i+1)
			}
		}
	}
}

// WithDenied starts with permissions that no caller has; see Server.Deny.
func WithDenied(permissions ...string) Option {
	return func(o *options) { o.access.denied = append(o.access.denied, permissions...) }
}

// WithDisabled starts with services that are off; see Server.Disable.
func WithDisabled(services ...string) Option {
	return func(o *options) { o.access.disabled = append(o.access.disabled, services...) }
}

// authorize is the interceptor that refuses calls of the Container API.
func (s *Server) authorize(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	if err := s.mayCall(ContainerAPI, method, resourceOf(req)); err != nil {
		return nil, err
	}
	return handle(ctx, req)
}

// mayCall refuses a method of a service on a resource (projects/P/...).
func (s *Server) mayCall(service, method, resource string) error {
	s.mu.Lock()
	a := s.access
	s.mu.Unlock()
	parts := strings.Split(resource, "/")
	if len(parts) < 2 {
		return nil // no such name: the method says so
	}
	if slices.Contains(a.disabled, service) {
		return serviceDisabled(service, parts[1])
	}
	permission := permissions[method]
	if permission == "" || !slices.Contains(a.denied, permission) {
		return nil
	}
	if strings.HasSuffix(permission, ".create") || strings.HasSuffix(permission, ".list") {
		resource = strings.Join(parts[:2], "/") // what is not there yet belongs to the project
	}
	if service == ComputeAPI {
		return &computeError{status: http.StatusForbidden, reason: "forbidden",
			message: fmt.Sprintf("Required '%s' permission for '%s'", permission, resource)}
	}
	return apiError(codes.PermissionDenied, fmt.Sprintf("Required %q permission(s) for %q.", permission, shown(resource)), &errdetails.ErrorInfo{
		Reason: "IAM_PERMISSION_DENIED", Domain: service, Metadata: map[string]string{"permission": permission, "resource": shown(resource)},
	})
}

// resourceOf is the resource that a request of the Container API is about.
func resourceOf(req any) string {
	m, ok := req.(proto.Message)
	if !ok {
		return ""
	}
	field := func(name protoreflect.Name) string {
		if f := m.ProtoReflect().Descriptor().Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind {
			return m.ProtoReflect().Get(f).String()
		}
		return ""
	}
	if name := field("name") + field("parent"); name != "" {
		return name
	}
	path := []string{"projects", field("project_id"), "locations", field("zone")}
	if path[1] == "" {
		return ""
	}
	for kind, name := range map[string]string{"clusters": field("cluster_id"), "operations": field("operation_id")} {
		if name != "" {
			path = append(path, kind, name)
		}
	}
	return strings.Join(path, "/")
}

// serviceDisabled is Google's front end speaking of a project that has not
// enabled a service.
func serviceDisabled(service, project string) error {
	number := fmt.Sprint(projectNumber(project))
	url := fmt.Sprintf("https://console.developers.google.com/apis/api/%s/overview?project=%s", service, number)
	msg := fmt.Sprintf("%s has not been used in project %s before or it is disabled. Enable it by visiting %s then retry. "+
		"If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.", titles[service], number, url)
	details := []protoadapt.MessageV1{
		&errdetails.ErrorInfo{Reason: "SERVICE_DISABLED", Domain: "googleapis.com", Metadata: map[string]string{
			"service": service, "serviceTitle": titles[service], "consumer": "projects/" + number, "containerInfo": number, "activationUrl": url,
		}},
		&errdetails.LocalizedMessage{Locale: "en-US", Message: msg},
		&errdetails.Help{Links: []*errdetails.Help_Link{{Description: "Google developers console API activation", Url: url}}},
	}
	return apiError(codes.PermissionDenied, msg, details...)
}
