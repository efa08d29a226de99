// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	certutil "k8s.io/client-go/util/cert"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/helm"
)

const (
	// releaseName is the name of the helm release.
	releaseName = "celset"
	// system is the namespace of all programs except the scheduler.
	system = "celset-system"
)

// A cluster is a control plane with controllers and one worker node.
type cluster struct{ *env.Env }

// TestChart installs, upgrades and uninstalls releases with different values.
func TestChart(t *testing.T) {
	c := cluster{env.Start(t, controlplane.Options{SkipKwok: true, ServiceAccountAdmission: true})}
	_, err := controlplane.CreateNodes(t.Context(), c.Client(), 1, controlplane.NodeOptions{
		Prefix: "worker", Static: true, Labels: map[string]string{"celset.dev/topology": "ring"},
	})
	require.NoError(t, err)
	c.restrict(t, metav1.NamespaceSystem)
	var before map[string]bool
	env.Until(t, "controllers have made what is in each namespace", func(context.Context) (bool, error) {
		before = c.stored(t)
		for _, namespace := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
			if !before["configmaps "+namespace+"/kube-root-ca.crt"] || !before["serviceaccounts "+namespace+"/default"] {
				return false, nil
			}
		}
		return true, nil
	})

	// If the cluster lacks kinds that the values need, the installation fails and creates no object.
	for values, kind := range map[string]string{
		"monitoring.podMonitors=true":                                 `no matches for kind "PodMonitor" in version "monitoring.coreos.com/v1"`,
		"monitoring.rules=true":                                       `no matches for kind "PrometheusRule" in version "monitoring.coreos.com/v1"`,
		"webhook.enabled=true,webhook.certificates.from=cert-manager": `no matches for kind "Certificate" in version "cert-manager.io/v1"`,
	} {
		output, err := c.deploy(t, "install", values)
		require.Error(t, err)
		require.Contains(t, output, kind)
		require.Empty(t, c.left(t, before), values)
	}

	output, err := c.deploy(t, "install")
	require.NoError(t, err, output)
	require.Contains(t, output, "celset-scheduler waits for the lease kube-system/kube-scheduler")
	c.requirePods(t, "celset-scheduler", 2, "--leader-elect-resource-name=kube-scheduler")

	// Upgrade to all programs. The user has created the namespace, and provides a certificate.
	_, err = c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.restrict(t, system)
	certificate, _, err := certutil.GenerateSelfSignedCertKey("celset-webhook.celset-system.svc", nil, nil)
	require.NoError(t, err)
	all := []string{
		"placement.enabled=true", "placement.crds=true", "placement.bindings=true",
		"webhook.enabled=true", "webhook.policy=true", "webhook.placements=true",
		"webhook.certificates.from=secret", "webhook.certificates.caBundle=" + base64.StdEncoding.EncodeToString(certificate),
		"topologyDriver.enabled=true",
	}
	output, err = c.deploy(t, "upgrade", all...)
	require.NoError(t, err, output)
	for program, count := range map[string]int{"celset-scheduler": 2, "celset-placement": 2, "celset-webhook": 2, "celset-topology-driver": 1} {
		c.requirePods(t, program, count, "")
	}
	output, err = c.deploy(t, "upgrade", append(all,
		"scheduler.mode=second", "scheduler.replicas=1", "placement.allPlacements=true", "placement.replicas=1",
		"webhook.replicas=1", "webhook.schedulerNames={celset-scheduler,another}", "topologyDriver.extraArgs[0]=--devices=12")...)
	require.NoError(t, err, output)
	for program, arg := range map[string]string{
		"celset-scheduler": "--secure-port=10259", "celset-placement": "--all-placements",
		"celset-webhook": "--scheduler-names=celset-scheduler,another", "celset-topology-driver": "--devices=12",
	} {
		c.requirePods(t, program, 1, arg)
	}
	c.uninstall(t, before)
	require.NoError(t, c.Client().CoreV1().Namespaces().Delete(t.Context(), system, metav1.DeleteOptions{}))
	env.Until(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := c.Client().CoreV1().Namespaces().Get(ctx, system, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})

	// Install into a cluster with the kinds of cert-manager and of the Prometheus operator. The new release has the name of the
	// old one, so it takes over the objects that were kept. It creates its namespace.
	for _, file := range []string{"cert-manager.yaml", "prometheus-operator.yaml"} {
		definitions, err := os.ReadFile("../manifests/testdata/" + file)
		require.NoError(t, err)
		require.NoError(t, hub.InstallDefinitions(t.Context(), c.RESTConfig(), definitions))
	}
	before = c.stored(t)
	values := []string{
		"scheduler.mode=second", "placement.enabled=true", "placement.crds=true", "webhook.enabled=true", "topologyDriver.enabled=true",
		"webhook.certificates.from=cert-manager", "monitoring.podMonitors=true", "monitoring.rules=true", "monitoring.labels.release=prometheus",
	}
	output, err = c.deploy(t, "install", values...)
	require.NoError(t, err, output)
	c.requirePods(t, "celset-webhook", 2, "")
	c.injectCertificate(t, certificate)
	output, err = c.deploy(t, "upgrade", append(values, "webhook.replicas=1")...)
	require.NoError(t, err, "what cert-manager has written into the configuration of the webhook is not helm's: %s", output)
	c.requirePods(t, "celset-webhook", 1, "")

	// Upgrade from cert-manager to certificates that the webhook creates itself. The next upgrade must keep the fields that the
	// webhook has written.
	values = append(values, "webhook.certificates.from=self")
	output, err = c.deploy(t, "upgrade", values...)
	require.NoError(t, err, output)
	c.writeCertificate(t, certificate)
	output, err = c.deploy(t, "upgrade", append(values, "webhook.replicas=1")...)
	require.NoError(t, err, output)
	secret, err := c.Client().CoreV1().Secrets(system).Get(t.Context(), "celset-webhook-certificates", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, certificate, secret.Data[corev1.TLSCertKey])
	hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "celset-webhook", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotContains(t, hooks.Annotations, "cert-manager.io/inject-ca-from")
	require.Equal(t, certificate, hooks.Webhooks[0].ClientConfig.CABundle)
	c.uninstall(t, before)
}

// restrict makes the API server reject pods in the namespace that violate the pod security level "restricted".
func (c cluster) restrict(t *testing.T, namespace string) {
	t.Helper()
	_, err := c.Client().CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// deploy runs a helm command for the chart. Each of values is the value of a flag --set. deploy does not wait until pods are
// ready.
func (c cluster) deploy(t *testing.T, command string, values ...string) (output string, err error) {
	t.Helper()
	args := []string{command, releaseName, helm.Chart(t), "--set=image.registry=registry.example.com/celset"}
	for _, value := range values {
		args = append(args, "--set="+value)
	}
	return c.helm(t, args...)
}

func (c cluster) helm(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	return helm.Run(t, append(args, "--namespace=kube-system", "--kubeconfig="+c.Kubeconfig())...)
}

// requirePods waits until exactly count pods of a program exist that have the argument arg; if arg is empty, all pods count.
// Pods without the argument may remain: no pod ever becomes ready here, so rollouts never complete.
func (c cluster) requirePods(t *testing.T, program string, count int, arg string) {
	t.Helper()
	env.Eventually(t, fmt.Sprintf("%d pods of %s with %q", count, program, arg), func(ctx context.Context) (string, error) {
		list, err := c.Client().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + program})
		if err != nil {
			return "", err
		}
		var found [][]string
		for _, pod := range list.Items {
			found = append(found, pod.Spec.Containers[0].Args)
		}
		with := slices.DeleteFunc(slices.Clone(found), func(args []string) bool { return arg != "" && !slices.Contains(args, arg) })
		if len(with) != count {
			return fmt.Sprint(found), nil
		}
		return "", nil
	})
}

// injectCertificate writes the certificate into the webhook configuration, as cert-manager would.
func (c cluster) injectCertificate(t *testing.T, certificate []byte) {
	t.Helper()
	hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "celset-webhook", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, hooks.Annotations, "cert-manager.io/inject-ca-from")
	c.trust(t, hooks, certificate)
}

// writeCertificate writes the certificate into the Secret and the webhook configuration, as celset-webhook would.
func (c cluster) writeCertificate(t *testing.T, certificate []byte) {
	t.Helper()
	secrets := c.Client().CoreV1().Secrets(system)
	secret, err := secrets.Get(t.Context(), "celset-webhook-certificates", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, secret.Data)
	secret.Data = map[string][]byte{corev1.TLSCertKey: certificate}
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{FieldManager: "celset-webhook"})
	require.NoError(t, err)
	hooks, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "celset-webhook", metav1.GetOptions{})
	require.NoError(t, err)
	c.trust(t, hooks, certificate)
}

func (c cluster) trust(t *testing.T, hooks *admissionv1.ValidatingWebhookConfiguration, certificate []byte) {
	t.Helper()
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig.CABundle = certificate
	}
	_, err := c.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), hooks, metav1.UpdateOptions{FieldManager: "any"})
	require.NoError(t, err)
}

// uninstall uninstalls the release. Afterwards only objects that docs/install.md lists as kept may exist in addition to before.
func (c cluster) uninstall(t *testing.T, before map[string]bool) {
	t.Helper()
	output, err := c.helm(t, "uninstall", releaseName, "--wait")
	require.NoError(t, err, output)
	page, err := os.ReadFile("../../docs/install.md")
	require.NoError(t, err)
	_, uninstalling, found := strings.Cut(string(page), "\n## Uninstalling\n")
	require.True(t, found)
	uninstalling, _, _ = strings.Cut(uninstalling, "\n## ")
	// Poll, because the garbage collector deletes objects with an owner a little later than the owner.
	var left []string
	env.Eventually(t, "nothing is left that the page does not tell of", func(context.Context) (string, error) {
		left = c.left(t, before)
		unsaid := slices.DeleteFunc(slices.Clone(left), func(object string) bool {
			resource, name, _ := strings.Cut(object, " ")
			return strings.HasPrefix(resource, "apiservices.") || // the API server creates APIServices for CRDs
				name == system || strings.HasPrefix(name, system+"/") || // the user's namespace, and objects that controllers create in it
				strings.Contains(uninstalling, "`"+strings.TrimSuffix(name, ".cluster.open-cluster-management.io")+"`")
		})
		return strings.Join(unsaid, ", "), nil
	})
	for _, object := range []string{
		"customresourcedefinitions.apiextensions.k8s.io placements.cluster.open-cluster-management.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io celset-managedclustersetbindings",
	} {
		require.Contains(t, slices.Collect(maps.Keys(c.stored(t))), object)
	}
}

// stored returns all objects in the API server as "resource namespace/name". It leaves out events, because they expire.
func (c cluster) stored(t *testing.T) map[string]bool {
	t.Helper()
	objects, err := metadata.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	lists, err := discovery.ServerPreferredResources(c.Client().Discovery())
	require.NoError(t, err)
	stored := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" {
				continue
			}
			list, err := objects.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // the API server lists a deleted CRD's resource for another moment
			}
			require.NoError(t, err, resource.Name)
			for _, object := range list.Items {
				stored[strings.TrimSuffix(resource.Name+"."+version.Group, ".")+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")] = true
			}
		}
	}
	return stored
}

// left returns the objects that exist in the API server but are not in before.
func (c cluster) left(t *testing.T, before map[string]bool) []string {
	t.Helper()
	now := c.stored(t)
	maps.DeleteFunc(now, func(object string, _ bool) bool { return before[object] })
	return slices.Sorted(maps.Keys(now))
}
