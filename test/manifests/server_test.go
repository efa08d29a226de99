// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/render"
)

// An apiServer validates objects by dry runs. It stores only namespaces, CRDs, and objects that running programs need.
type apiServer struct{ *env.Env }

// shared is the API server that all tests share.
var shared *apiServer

func TestMain(m *testing.M) {
	env.Main(m, func(t testing.TB) {
		completed = t.TempDir()
		require.NoError(t, complete(completed))
		shared = &apiServer{env.APIServer(t, env.Placement)}
		require.NoError(t, hub.Install(t.Context(), shared.RESTConfig()))
		for _, file := range []string{"cert-manager.yaml", "prometheus-operator.yaml"} {
			definitions, err := os.ReadFile(filepath.Join("testdata", file))
			require.NoError(t, err)
			require.NoError(t, hub.InstallDefinitions(t.Context(), shared.RESTConfig(), definitions))
		}
	})
}

// warnLabel is a namespace label. The API server warns of pods that violate the pod security level in its value.
const warnLabel = "pod-security.kubernetes.io/warn"

// podSecurity returns labels for the pod security level "restricted". The topology driver's namespace gets another level,
// because its pods need directories of the node.
func podSecurity(namespace string) map[string]string {
	if namespace == driverNamespace {
		return map[string]string{warnLabel: "privileged"}
	}
	return map[string]string{warnLabel: "restricted"}
}

// server returns the API server that all tests share.
func server(t *testing.T) *apiServer {
	t.Helper()
	return shared
}

// dryRun creates the objects by a dry run: the API server sets defaults, validates and admits the objects, but does not store
// them. A warning fails the test.
func (s *apiServer) dryRun(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	require.NotEmpty(t, objects)
	warnings := &warnings{}
	config := s.RESTConfig()
	config.WarningHandler = warnings
	for _, object := range objects {
		s.ensureNamespace(t, object)
		require.NoError(t, s.apply(t, config, object))
	}
	require.Empty(t, warnings.texts)
}

func (s *apiServer) apply(t *testing.T, config *rest.Config, object *unstructured.Unstructured) error {
	t.Helper()
	content, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	_, err = controlplane.Apply(t.Context(), config, content, controlplane.ApplyOptions{DryRun: true})
	return err
}

// ensureNamespace creates the namespace of an object if it does not exist. If the object is a namespace, it creates that
// namespace. In the namespace, the API server warns of insecure pods.
func (s *apiServer) ensureNamespace(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	name := object.GetNamespace()
	if object.GetKind() == "Namespace" {
		name = object.GetName()
	}
	if name == "" {
		return
	}
	namespaces := s.Client().CoreV1().Namespaces()
	_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: podSecurity(name)}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, warnLabel, podSecurity(name)[warnLabel])
		_, err = namespaces.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	require.NoError(t, err)
}

// warnings collects the warnings of the API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// TestDryRunNoticesMistakes checks that dryRun rejects wrong objects. Otherwise the other tests would prove nothing.
func TestDryRunNoticesMistakes(t *testing.T) {
	for name, change := range map[string]struct {
		fields []string
		value  any
		err    string
	}{
		"unknown field":  {[]string{"spec", "replica"}, int64(2), "spec.replica"},
		"wrong selector": {[]string{"spec", "selector", "matchLabels"}, map[string]any{"no": "pod"}, "does not match template"},
	} {
		t.Run(name, func(t *testing.T) {
			object := find(t, rendered(t, "scheduler"), "Deployment", "celset-scheduler")
			require.NoError(t, unstructured.SetNestedField(object.Object, change.value, change.fields...))
			require.ErrorContains(t, server(t).apply(t, server(t).RESTConfig(), object), change.err)
		})
	}
	t.Run("pod that is not restricted", func(t *testing.T) {
		object := find(t, rendered(t, "scheduler"), "Deployment", "celset-scheduler")
		unstructured.RemoveNestedField(object.Object, "spec", "template", "spec", "securityContext")
		server(t).ensureNamespace(t, object)
		warnings, config := &warnings{}, server(t).RESTConfig()
		config.WarningHandler = warnings
		require.NoError(t, server(t).apply(t, config, object))
		require.Len(t, warnings.texts, 1)
		require.Contains(t, warnings.texts[0], "would violate PodSecurity")
	})
}

// find returns the object of a kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := render.Find(objects, kind, name)
	require.NoError(t, err)
	return object
}
