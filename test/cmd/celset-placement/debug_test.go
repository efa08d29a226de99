// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetplacement

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/placement/debug"
	"github.com/celset/celset/placement/report"
)

// rights are the roles in the namespace default: the user reader may get Placements, and the user author may create them.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [cluster.open-cluster-management.io], resources: [placements], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: author, namespace: default}
rules: [{apiGroups: [cluster.open-cluster-management.io], resources: [placements], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: reader, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: author, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: author}
subjects: [{kind: User, name: author, apiGroup: rbac.authorization.k8s.io}]
`

// debugged is the debug server of a running celset-placement.
type debugged struct {
	client  *http.Client
	address string
	// tokens maps the name of a user to the user's token.
	tokens map[string]string
}

// call sends a request with a YAML body as the user who. It returns the status code and the body of the response.
func (d *debugged) call(t *testing.T, method, path, who, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+d.address+debug.Path+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/yaml")
	if token, ok := d.tokens[who]; ok {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := d.client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// report sends a request like call, and decodes the report in the response.
func (d *debugged) report(t *testing.T, method, path, who, body string) *report.Report {
	t.Helper()
	code, content := d.call(t, method, path, who, body)
	require.Equal(t, http.StatusOK, code, content)
	report := &report.Report{}
	require.NoError(t, json.Unmarshal([]byte(content), report))
	return report
}

func trusting(config *tls.Config) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

// requirePreviewed requires that the leader's debug server returns the status that the leader's controller has written. The
// leader created the server's certificate itself, so the client can't verify it.
func requirePreviewed(t *testing.T, p *program, token string, written *clusterv1beta1.Placement) {
	t.Helper()
	d := &debugged{trusting(&tls.Config{InsecureSkipVerify: true}), p.debug, map[string]string{"admin": token}}
	report := d.report(t, http.MethodGet, "/"+written.Namespace+"/"+written.Name, "admin", "")
	require.True(t, report.Responsible)
	require.False(t, report.KeepsFormer)
	require.Empty(t, cmp.Diff(written.Status.Conditions, report.Status.Conditions))
	require.Equal(t, written.Status.DecisionGroups, report.Status.DecisionGroups)
}

// startDebugged starts the program while another program holds the leader's lease. So the program writes no decisions, but
// answers requests. The certificate of its debug server is in files.
func startDebugged(t *testing.T) (*debugged, client.Client) {
	t.Helper()
	hub, p := startHub(t, "reader", "author", "stranger")
	hub.ApplyText(t, rights)
	require.NoError(t, hub.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: controller.Name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}))
	populate(t, hub)

	d := &debugged{address: p.debug, tokens: map[string]string{"forged": "forged"}}
	for _, user := range []string{"reader", "author", "stranger"} {
		config, err := hub.RESTConfigFor(user)
		require.NoError(t, err)
		d.tokens[user] = config.BearerToken
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	certificates := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(certificates, "tls.crt"), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(certificates, "tls.key"), key, 0o600))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cert))
	d.client = trusting(&tls.Config{RootCAs: roots})

	p.start(t, "--debug-cert-dir="+certificates)
	get(t, "http://"+p.health+"/readyz")
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", p.debug)
		return err == nil && connection.Close() == nil
	}, 2*time.Minute, 50*time.Millisecond, "nobody listens at the debug address")
	return d, hub
}

func TestDebug(t *testing.T) {
	d, c := startDebugged(t)
	object := placementOf("any", `managedCluster.metadata.name == "c1"`)
	require.NoError(t, c.Create(t.Context(), object))
	valid := manifest(t, placementOf("new", `managedCluster.metadata.name != "c1"`))

	t.Run("who may not ask", func(t *testing.T) {
		for _, test := range []struct {
			method, path, who, body string
			code                    int
		}{
			{http.MethodGet, "/default/any", "nobody", "", http.StatusUnauthorized},
			{http.MethodGet, "/default/any", "forged", "", http.StatusUnauthorized},
			{http.MethodGet, "/default/any", "stranger", "", http.StatusForbidden},
			{http.MethodGet, "/default/any", "author", "", http.StatusForbidden},
			{http.MethodGet, "/kube-system/any", "reader", "", http.StatusForbidden},
			{http.MethodPost, "/", "nobody", valid, http.StatusUnauthorized},
			{http.MethodPost, "/", "reader", valid, http.StatusForbidden},
			{http.MethodPost, "/", "author", strings.Replace(valid, "namespace: default", "namespace: kube-system", 1), http.StatusForbidden},
			{http.MethodGet, "/default/missing", "reader", "", http.StatusNotFound},
			{http.MethodPost, "/", "author", "kind: Pod", http.StatusBadRequest},
		} {
			code, body := d.call(t, test.method, test.path, test.who, test.body)
			require.Equal(t, test.code, code, "%s %s by %s: %s", test.method, test.path, test.who, body)
		}
	})
	t.Run("who may get", func(t *testing.T) {
		require.Eventually(t, func() bool {
			code, _ := d.call(t, http.MethodGet, "/default/any", "reader", "")
			return code == http.StatusOK
		}, 2*time.Minute, 50*time.Millisecond, "the cache does not have the Placement")
		report := d.report(t, http.MethodGet, "/default/any", "reader", "")
		require.Equal(t, []string{"c1"}, report.Filters[0].Passed)
		require.Equal(t, "c2", report.Filters[0].Removed[0].Cluster)
		require.Equal(t, "does not match spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]", report.Filters[0].Removed[0].Reason)
		require.Len(t, report.Prioritizers, 2)
		require.EqualValues(t, 1, report.Status.NumberOfSelectedClusters)
		require.False(t, report.Responsible, "neither annotated nor are all taken")
	})
	t.Run("who may create", func(t *testing.T) {
		report := d.report(t, http.MethodPost, "/", "author", valid)
		require.Equal(t, "c2", report.Candidates[0].Cluster)
		require.Equal(t, "new-decision-1", report.Groups[0].Decisions[0].Name)

		report = d.report(t, http.MethodPost, "/", "author", manifest(t, placementOf("new", `managedCluster.`)))
		require.True(t, report.Undecided)
		require.Contains(t, report.Misconfigurations[0].Message, "Syntax error")
		require.True(t, meta.IsStatusConditionTrue(report.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured))
	})
	t.Run("defaults are those of the API server", func(t *testing.T) {
		requireSameDefaults(t, d, c)
	})
	requireNothingWritten(t, c, object)
}

// manifest returns the Placement as YAML.
func manifest(t *testing.T, object *clusterv1beta1.Placement) string {
	t.Helper()
	object.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement"}
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// requireSameDefaults compares the defaults in the preview of a Placement with the defaults that the API server sets.
func requireSameDefaults(t *testing.T, d *debugged, c client.Client) {
	t.Helper()
	for _, spec := range []string{
		`{}`,
		`{decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {a: b}}}}]}},
		  prioritizerPolicy: {mode: Exact, configurations: [
		    {scoreCoordinate: {builtIn: Steady}}, {weight: 0, scoreCoordinate: {builtIn: Balance}},
		    {weight: -3, scoreCoordinate: {type: AddOn, addOn: {resourceName: r, scoreName: s}}}]},
		  tolerations: [{key: a, value: b}, {operator: Exists}],
		  spreadPolicy: {spreadConstraints: [{topologyKey: a, topologyKeyType: Label}, {topologyKey: b, topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}}`,
	} {
		text := "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {namespace: default, name: new}\nspec: " +
			strings.ReplaceAll(spec, "\t", "")
		stored := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &stored.Object))
		require.NoError(t, c.Create(t.Context(), stored, client.DryRunAll))
		content, err := json.Marshal(stored.Object["spec"])
		require.NoError(t, err)
		var want clusterv1beta1.PlacementSpec
		require.NoError(t, json.Unmarshal(content, &want))
		// The API server sets defaults only inside objects that exist in the manifest. Where an object is missing, the Go type
		// has zero values with the same meaning.
		got := d.report(t, http.MethodPost, "/", "author", text).Placement.Spec
		if _, found, _ := unstructured.NestedMap(stored.Object, "spec", "decisionStrategy", "groupStrategy"); !found {
			want.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = got.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
		}
		if want.PrioritizerPolicy.Mode == "" {
			want.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeAdditive
		}
		require.Empty(t, cmp.Diff(want, got))
	}
}

// requireNothingWritten requires that object is the only Placement and is unchanged, and that no PlacementDecisions exist.
func requireNothingWritten(t *testing.T, c client.Client, object *clusterv1beta1.Placement) {
	t.Helper()
	var placements clusterv1beta1.PlacementList
	require.NoError(t, c.List(t.Context(), &placements))
	require.Len(t, placements.Items, 1)
	require.Equal(t, object.ResourceVersion, placements.Items[0].ResourceVersion)
	var decisions clusterv1beta1.PlacementDecisionList
	require.NoError(t, c.List(t.Context(), &decisions))
	require.Empty(t, decisions.Items)
}
