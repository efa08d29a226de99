// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chart

import (
	"context"
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/internal/hub"
)

// allParts are the values of a release with everything, and with a certificate of the user's.
func allParts(certificate []byte) []string {
	return []string{
		"placement.enabled=true", "placement.crds=true", "placement.bindings=true",
		"webhook.enabled=true", "webhook.policy=true", "webhook.placements=true",
		"webhook.certificates.from=secret", "webhook.certificates.caBundle=" + base64.StdEncoding.EncodeToString(certificate),
		"topologyDriver.enabled=true",
	}
}

// TestChart is the life of a release.
func TestChart(t *testing.T) {
	c := start(t)
	step := func(name string, do func(*testing.T)) {
		t.Helper()
		if !t.Run(name, do) || t.Failed() {
			t.FailNow()
		}
		require.Empty(t, c.runner.Problems(), name)
	}
	before := c.stored(t)
	certificate, key := newCertificate(t, webhookName)

	step("what needs kinds that are not there changes nothing", func(t *testing.T) { c.refuseMissingKinds(t, before) })
	step("default values", c.installDefaults)
	step("in place of kube-scheduler", c.replaceStock)
	step("all parts", func(t *testing.T) {
		c.makeNamespace(t, certificate, key)
		c.deploy(t, "upgrade", allParts(certificate)...)
		c.requireProbed(t, map[string]int{"celset-scheduler": 2, "celset-placement": 2, "celset-webhook": 2, "celset-topology-driver": 1})
		c.useDevices(t)
		c.usePlacements(t)
	})
	step("other values", func(t *testing.T) { c.changeValues(t, certificate) })
	step("nothing is left behind", func(t *testing.T) { c.uninstall(t, before) })
	step("with cert-manager and Prometheus", c.installBesideOthers)
	step("nothing is left behind again", func(t *testing.T) { c.uninstall(t, before) })
}

// refuseMissingKinds asks for objects of others that are not installed.
func (c *cluster) refuseMissingKinds(t *testing.T, before map[string]bool) {
	for values, kind := range map[string]string{
		"monitoring.podMonitors=true": `no matches for kind "PodMonitor" in version "monitoring.coreos.com/v1"`,
		"monitoring.rules=true":       `no matches for kind "PrometheusRule" in version "monitoring.coreos.com/v1"`,
		"webhook.enabled=true":        `no matches for kind "Certificate" in version "cert-manager.io/v1"`,
	} {
		output, err := c.install(t, "install", values)
		require.Error(t, err)
		require.Contains(t, output, kind)
		require.Empty(t, c.left(t, before), values)
	}
}

// installDefaults has two pods beside kube-scheduler that are ready and wait.
func (c *cluster) installDefaults(t *testing.T) {
	output := c.deploy(t, "install")
	require.Contains(t, output, "celset-scheduler waits for the lease kube-system/kube-scheduler")
	var nodes []string
	for _, pod := range c.requireProbed(t, map[string]int{"celset-scheduler": 2}) {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	slices.Sort(nodes)
	require.Equal(t, []string{"control-plane-0", "control-plane-1"}, nodes)
	require.NotEmpty(t, c.holder(t.Context(), "kube-scheduler"))
	require.NotContains(t, c.holder(t.Context(), "kube-scheduler"), "celset")
	c.createPod(t, "before", "default-scheduler", "")
	c.requireBound(t, "before")
}

// replaceStock ends kube-scheduler.
func (c *cluster) replaceStock(t *testing.T) {
	c.stock.Stop()
	c.requireLeader(t, "kube-scheduler")
	c.createPod(t, "after", "default-scheduler", "")
	c.requireBound(t, "after")
}

// makeNamespace is what a user does who brings a certificate.
func (c *cluster) makeNamespace(t *testing.T, certificate, key []byte) {
	_, err := c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.createSecret(t.Context(), "celset-webhook-tls", certificate, key))
}

// useDevices has the scheduler serve a claim for devices of the driver, and the webhook refuse one.
func (c *cluster) useDevices(t *testing.T) {
	c.requireDevices(t, 8)
	require.NoError(t, c.apply(t, claim("connected", connected)))
	c.createPod(t, "connected", "celset-scheduler", "connected")
	c.requireBound(t, "connected")
	c.requireConnected(t, "connected")

	c.requireMistakeRefused(t)
	// Without the webhook, too.
	var err error
	eventually(t, "the policy is asked", func(context.Context) (bool, error) {
		err = c.apply(t, strings.Replace(claim("default", connected), "name: ring4,", "name: ring4, default: true,", 1))
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'celset-resourceclaims'"), nil
	})
	require.ErrorContains(t, err, "only the CELDeviceConstraint of a DeviceClass can be a default")
}

// usePlacements has the controller bind a set and decide, and the webhook refuse.
func (c *cluster) usePlacements(t *testing.T) {
	c.applyFile(t, "testdata/fleet.yaml")
	c.requireBinding(t, "europe")
	require.NoError(t, c.apply(t, placement("annotated", "true", `managedCluster.metadata.name == "paris"`)))
	require.Equal(t, []string{"paris"}, c.decided(t, "annotated"))
	err := c.apply(t, placement("mistaken", "true", "managedCluster."))
	require.ErrorContains(t, err, `admission webhook "placements.celset.dev" denied the request`)
	require.NoError(t, c.apply(t, placement("of-others", "false", "managedCluster.")), "celset does not decide it")
}

// changeValues upgrades every part.
func (c *cluster) changeValues(t *testing.T, certificate []byte) {
	former := map[string]bool{}
	for _, name := range programs {
		for _, pod := range c.pods(t, name) {
			former[pod.Name] = true
		}
	}
	c.startStock(t)
	c.deploy(t, "upgrade", append(allParts(certificate),
		"scheduler.mode=second", "scheduler.replicas=1", "scheduler.extraArgs[0]=--v=3",
		"placement.allPlacements=true", "placement.replicas=1",
		"webhook.replicas=1", "webhook.schedulerNames={celset-scheduler,another}",
		"topologyDriver.extraArgs[0]=--devices=12")...)
	pods := c.requireProbed(t, map[string]int{"celset-scheduler": 1, "celset-placement": 1, "celset-webhook": 1, "celset-topology-driver": 1})
	for _, pod := range pods {
		require.NotContains(t, former, pod.Name)
	}
	c.requireDevices(t, 12)
	c.requireLeader(t, "celset-scheduler")
	require.NotContains(t, c.holder(t.Context(), "kube-scheduler"), "celset")
	require.NoError(t, c.apply(t, claim("second", connected)))
	c.createPod(t, "second", "celset-scheduler", "second")
	c.createPod(t, "stock", "default-scheduler", "")
	c.requireBound(t, "second")
	c.requireConnected(t, "second")
	c.requireBound(t, "stock")
	require.NoError(t, c.apply(t, placement("all", "", `managedCluster.metadata.name == "berlin"`)))
	require.Equal(t, []string{"berlin"}, c.decided(t, "all"))
	require.ErrorContains(t, c.apply(t, placement("mistaken", "", "managedCluster.")), "placements.celset.dev")
}

// uninstall removes the release, and then what docs/install.md says that stays and what the steps
// before have made.
func (c *cluster) uninstall(t *testing.T, before map[string]bool) {
	// Before it: helm deletes the roles while pods are still ending.
	c.requireNothingForbidden(t)
	output, err := c.helm(t, "uninstall", releaseName, "--wait", "--timeout="+patience.String())
	require.NoError(t, err, output)
	c.removeOwn(t)
	page, err := os.ReadFile("../../docs/install.md")
	require.NoError(t, err)
	_, uninstalling, found := strings.Cut(string(page), "\n## Uninstalling\n")
	require.True(t, found)
	uninstalling, _, _ = strings.Cut(uninstalling, "\n## ")
	unsaid := func(object string) bool {
		resource, name, _ := strings.Cut(object, " ")
		if strings.HasPrefix(resource, "apiservices.") {
			return false // The API server makes them of the definitions.
		}
		return !strings.Contains(uninstalling, "`"+strings.TrimSuffix(name, ".cluster.open-cluster-management.io")+"`")
	}
	// What belongs to others is collected after them.
	var left []string
	stays := func(context.Context) (bool, error) {
		left = c.left(t, before)
		return !slices.ContainsFunc(left, unsaid), nil
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, stays)
	require.NoError(t, err, "the page does not say of all these that they are left: %q", left)
	for _, object := range kept {
		require.Contains(t, left, object)
	}
}

// kept are some of what stays.
var kept = []string{
	"customresourcedefinitions.apiextensions.k8s.io placements.cluster.open-cluster-management.io",
	"validatingadmissionpolicies.admissionregistration.k8s.io celset-managedclustersetbindings",
	"leases.coordination.k8s.io kube-system/celset-scheduler",
}

// installBesideOthers installs what needs kinds of cert-manager and of the Prometheus operator.
func (c *cluster) installBesideOthers(t *testing.T) {
	for _, file := range []string{"cert-manager.yaml", "prometheus-operator.yaml"} {
		definitions, err := os.ReadFile("../manifests/testdata/" + file)
		require.NoError(t, err)
		require.NoError(t, hub.InstallDefinitions(t.Context(), c.RESTConfig(), definitions))
	}
	ctx, stop := context.WithCancel(t.Context())
	certified := make(chan error, 1)
	go func() { certified <- c.manageCertificates(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-certified)
	}()
	values := []string{
		"scheduler.mode=second", "placement.enabled=true", "placement.crds=true", "webhook.enabled=true", "topologyDriver.enabled=true",
		"monitoring.podMonitors=true", "monitoring.rules=true", "monitoring.labels.release=prometheus",
	}
	c.deploy(t, "install", values...)
	c.requireProbed(t, map[string]int{"celset-scheduler": 2, "celset-placement": 2, "celset-webhook": 2, "celset-topology-driver": 1})
	c.requireMistakeRefused(t)
	c.requireScraped(t)
	// What cert-manager has written into the configuration of the webhook is not helm's.
	c.deploy(t, "upgrade", append(values, "webhook.replicas=1")...)
	c.requireMistakeRefused(t)
}

// requireNothingForbidden reads what the programs that ran since the last time have printed.
func (c *cluster) requireNothingForbidden(t *testing.T) {
	t.Helper()
	logs := c.runner.Logs()
	unread := logs[c.logsRead:]
	c.logsRead = len(logs)
	require.GreaterOrEqual(t, len(unread), 7, "one for each pod of a release")
	for _, path := range unread {
		log, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotEmpty(t, log, path)
		for line := range strings.Lines(string(log)) {
			require.NotContains(t, strings.ToLower(line), "forbidden", path)
		}
	}
}
