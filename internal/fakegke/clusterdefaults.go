package fakegke

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"
)

// fillCluster makes a request's cluster the object that GKE stores.
func fillCluster(in *containerpb.Cluster, at place, now time.Time) (*containerpb.Cluster, error) {
	c := proto.CloneOf(in)
	path := at.String() + "/clusters/" + c.Name
	c.NodePools, c.NodeConfig, c.InitialNodeCount = nil, nil, 0
	c.Endpoint, c.StatusMessage, c.Conditions, c.InstanceGroupUrls, c.CurrentNodeCount = "", "", nil, nil, 0
	c.Status = containerpb.Cluster_PROVISIONING
	c.SelfLink = "https://container.googleapis.com/v1/" + shown(path)
	c.Id = digest(64, path, now.String())
	c.CreateTime = now.UTC().Format(time.RFC3339Nano)
	c.Location, c.Zone = at.location, at.location
	if len(c.Locations) == 0 {
		c.Locations = zonesOf(at)
	}
	if err := checkZones(at, c.Locations); err != nil {
		return nil, err
	}
	if c.ReleaseChannel == nil {
		c.ReleaseChannel = &containerpb.ReleaseChannel{Channel: containerpb.ReleaseChannel_REGULAR}
	}
	version, err := resolveVersion(c.InitialClusterVersion, c.ReleaseChannel.Channel)
	if err != nil {
		return nil, err
	}
	c.InitialClusterVersion, c.CurrentMasterVersion, c.CurrentNodeVersion = version, version, version
	adopt(c)
	fillNetwork(c, at)
	fillServices(c)
	fillMaintenance(c)
	settle(c)
	if err := checkCluster(c); err != nil {
		return nil, err
	}
	if err := checkMaintenance(c); err != nil {
		return nil, err
	}
	c.MasterAuth = &containerpb.MasterAuth{ClientCertificateConfig: &containerpb.ClientCertificateConfig{}}
	c.LabelFingerprint = fingerprint(c.ResourceLabels)
	return c, nil
}

func fillServices(c *containerpb.Cluster) {
	addons := ensure(&c.AddonsConfig)
	if addons.GcePersistentDiskCsiDriverConfig == nil {
		addons.GcePersistentDiskCsiDriverConfig = &containerpb.GcePersistentDiskCsiDriverConfig{Enabled: true}
	}
	ensure(&addons.KubernetesDashboard).Disabled = true
	if addons.NetworkPolicyConfig == nil {
		addons.NetworkPolicyConfig = &containerpb.NetworkPolicyConfig{Disabled: true}
	}
	ensure(&addons.HttpLoadBalancing)
	ensure(&addons.HorizontalPodAutoscaling)
	ensure(&addons.DnsCacheConfig)
	if auto := ensure(&c.Autoscaling); auto.AutoscalingProfile == containerpb.ClusterAutoscaling_PROFILE_UNSPECIFIED {
		auto.AutoscalingProfile = containerpb.ClusterAutoscaling_BALANCED
	}
	if c.ShieldedNodes == nil {
		c.ShieldedNodes = &containerpb.ShieldedNodes{Enabled: true}
	}
	fillEncryption(c)
	ensure(&c.LegacyAbac)
	ensure(&c.NetworkPolicy)
	ensure(&c.BinaryAuthorization)
	ensure(&c.NotificationConfig)
	ensure(&c.NodePoolDefaults)
	posture := ensure(&c.SecurityPostureConfig)
	if posture.Mode == nil {
		posture.Mode = containerpb.SecurityPostureConfig_BASIC.Enum()
	}
	if posture.VulnerabilityMode == nil {
		posture.VulnerabilityMode = containerpb.SecurityPostureConfig_VULNERABILITY_DISABLED.Enum()
	}
	ensure(&c.EnterpriseConfig)
}

// fillEncryption completes how a cluster's secrets are kept.
func fillEncryption(c *containerpb.Cluster) {
	e := ensure(&c.DatabaseEncryption)
	current := containerpb.DatabaseEncryption_CURRENT_STATE_ENCRYPTED
	if e.State != containerpb.DatabaseEncryption_ENCRYPTED {
		e.State, current = containerpb.DatabaseEncryption_DECRYPTED, containerpb.DatabaseEncryption_CURRENT_STATE_DECRYPTED
	}
	e.CurrentState = current.Enum()
}

// ensure makes a nil message an empty one.
func ensure[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// setEndpoint puts an API server's address and CA into c, which nobody else holds.
func setEndpoint(c *containerpb.Cluster, end Endpoint) {
	c.Endpoint = end.Host
	ensure(&c.MasterAuth).ClusterCaCertificate = base64.StdEncoding.EncodeToString(end.CA)
	settle(c)
	c.Etag = etag(c)
}

// caOf is the certificate that setEndpoint put into a cluster.
func caOf(c *containerpb.Cluster) []byte {
	ca, _ := base64.StdEncoding.DecodeString(c.MasterAuth.GetClusterCaCertificate()) // setEndpoint's own
	return ca
}

// failCluster marks a cluster, which nobody else holds, as broken.
func failCluster(c *containerpb.Cluster, err error) {
	c.Status, c.StatusMessage = containerpb.Cluster_ERROR, err.Error()
	c.Conditions = []*containerpb.StatusCondition{{Message: err.Error(), CanonicalCode: code.Code_INTERNAL}}
	c.Etag = etag(c)
}

// nowhere is the endpoint of a cluster without a control plane: an address of
// the range reserved for documentation, and a certificate nobody serves with.
func nowhere(id string) Endpoint {
	return Endpoint{Host: fmt.Sprintf("203.0.113.%d", 1+number(id)%254), CA: placeholderCA()}
}

var placeholderCA = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fake cluster"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(30, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})

// number is a small number that depends on s.
func number(s string) int {
	n, _ := strconv.ParseUint(digest(7, s), 16, 32)
	return int(n)
}

// projectNumber stands in links where GKE writes the project's number.
func projectNumber(project string) int64 { return 100000000000 + int64(number(project)) }

func fingerprint(labels map[string]string) string {
	return digest(8, fmt.Sprint(labels)) // fmt prints maps in order of keys
}
