// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/admission"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// user is a client of an API server that calls the webhook. It collects the warnings in responses.
type user struct {
	client.Client
	mutex    sync.Mutex
	warnings []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (u *user) HandleWarningHeader(_ int, _, text string) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.warnings = append(u.warnings, text)
}

// warned returns the warnings since the last call.
func (u *user) warned() []string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	defer func() { u.warnings = nil }()
	return u.warnings
}

func newUser(t *testing.T, config *rest.Config) *user {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1beta1.Install(scheme)))
	u := &user{}
	config = rest.CopyConfig(config)
	config.WarningHandler = u
	var err error
	u.Client, err = client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return u
}

// serve runs the webhook's server until the test ends. It returns the client configuration that an API server needs to call it.
func serve(t *testing.T) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	const host = "127.0.0.1"
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	ports, err := controlplane.FreePorts(1)
	require.NoError(t, err)
	server := webhook.NewServer(webhook.Options{Host: host, Port: ports[0], CertDir: dir})
	require.NoError(t, admission.Register(server, admission.Options{}))
	require.Panics(t, func() { _ = admission.Register(server, admission.Options{}) }, "the path is taken")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.Eventually(t, func() bool { return server.StartedChecker()(nil) == nil }, 2*time.Minute, 20*time.Millisecond)
	return admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To("https://" + net.JoinHostPort(host, strconv.Itoa(ports[0])) + admission.Path),
		CABundle: certificate,
	}
}

// configuration returns the webhook configuration from the documentation of package placement/admission, with the given client
// configuration.
func configuration(of admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "celset-placement"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "placements.celset.dev", AdmissionReviewVersions: []string{"v1"}, ClientConfig: of,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			MatchPolicy: ptr.To(admissionregistrationv1.Equivalent),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{clusterv1beta1.GroupName}, APIVersions: []string{"v1beta1"}, Resources: []string{"placements"},
				},
			}},
		}},
	}
}

// ours returns the annotations of a Placement that celset decides, instead of Open Cluster Management.
func ours() map[string]string {
	return map[string]string{wellknown.AnnotationPlacement: "true", clusterv1beta1.PlacementDisableAnnotation: "true"}
}

// placed returns a Placement that celset decides, with this spec.
func placed(t testing.TB, spec string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: ours()}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec))
	return object
}

// waitForWebhook waits until the API server calls the webhook.
func (u *user) waitForWebhook(t *testing.T) {
	t.Helper()
	probe := placed(t, "numberOfClusters: -1")
	require.Eventually(t, func() bool {
		err := u.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)
		return apierrors.IsInvalid(err)
	}, 2*time.Minute, 50*time.Millisecond)
	u.warned()
}

func TestRealAPIServer(t *testing.T) {
	controlPlane := env.StartHub(t, controlplane.Options{})
	u := newUser(t, controlPlane.RESTConfig())

	wrong := `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.labels.cloud = 'aws'"]}}}]`
	const where = "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]: "
	earlier := placed(t, wrong)
	earlier.Name, earlier.Finalizers = "earlier", []string{"celset.dev/test"}
	require.NoError(t, u.Create(t.Context(), earlier), "nobody checks yet")
	require.NoError(t, u.Create(t.Context(), configuration(serve(t))))
	u.waitForWebhook(t)

	t.Run("what a user sees", func(t *testing.T) {
		object := placed(t, wrong)
		object.Name = "broken"
		err := u.Create(t.Context(), object)
		require.True(t, apierrors.IsInvalid(err))
		require.Equal(t, `admission webhook "placements.celset.dev" denied the request: `+
			`Placement.cluster.open-cluster-management.io "broken" is invalid: `+where+
			`Invalid value: "managedCluster.metadata.labels.cloud = 'aws'": `+
			"ERROR: <input>:1:38: Syntax error: token recognition error at: '= '\n"+
			" | managedCluster.metadata.labels.cloud = 'aws'\n"+
			" | .....................................^\n"+
			"ERROR: <input>:1:40: Syntax error: extraneous input ''aws'' expecting <EOF>\n"+
			" | managedCluster.metadata.labels.cloud = 'aws'\n"+
			" | .......................................^", err.Error())
		var status apierrors.APIStatus
		require.ErrorAs(t, err, &status)
		require.Equal(t, strings.TrimSuffix(where, ": "), status.Status().Details.Causes[0].Field)
	})
	t.Run("what is right", func(t *testing.T) {
		object := placed(t, "numberOfClusters: 0")
		object.Name = "right"
		require.NoError(t, u.Create(t.Context(), object))
		require.Equal(t, []string{"spec.numberOfClusters: 0 selects no cluster; to select all clusters, remove the field"}, u.warned())
		object.Spec.NumberOfClusters = ptr.To[int32](-1)
		require.True(t, apierrors.IsInvalid(u.Update(t.Context(), object)))
		require.NoError(t, u.Delete(t.Context(), object))
	})
	t.Run("what is another's", func(t *testing.T) {
		object := placed(t, wrong)
		object.Name, object.Annotations = "other", nil
		require.NoError(t, u.Create(t.Context(), object))
		require.Empty(t, u.warned())
		object.Annotations = ours()
		require.NoError(t, u.Update(t.Context(), object), "it was stored before it became ours")
		require.Len(t, u.warned(), 1)
	})
	t.Run("what was stored earlier", func(t *testing.T) { requireRatcheted(t, u, earlier, where) })
}

// requireRatcheted changes and deletes a stored Placement whose expression does not compile. The webhook must allow this as
// long as the expression does not change.
func requireRatcheted(t *testing.T, u *user, object *clusterv1beta1.Placement, where string) {
	t.Helper()
	warning := fmt.Sprintf("was already misconfigured: %sline 1, column 38: Syntax error: token recognition error at: '= '", where)
	object.Labels = map[string]string{"a": "b"}
	require.NoError(t, u.Update(t.Context(), object))
	require.Equal(t, []string{warning}, u.warned())
	object.Spec.NumberOfClusters = ptr.To[int32](3)
	require.NoError(t, u.Update(t.Context(), object))
	require.Equal(t, []string{warning}, u.warned())
	object.Status.NumberOfSelectedClusters = 1
	require.NoError(t, u.Status().Update(t.Context(), object))
	require.Empty(t, u.warned(), "the status is nobody's business")

	worse := object.DeepCopy()
	worse.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions[0] = "1"
	require.ErrorContains(t, u.Update(t.Context(), worse), where+`Invalid value: "1": `)
	u.warned()

	require.NoError(t, u.Delete(t.Context(), object))
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	require.NotNil(t, object.DeletionTimestamp)
	object.Finalizers = nil
	require.NoError(t, u.Update(t.Context(), object))
	require.Empty(t, u.warned())
	require.True(t, apierrors.IsNotFound(u.Get(t.Context(), client.ObjectKeyFromObject(object), object)))
}
