// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/internal/skew"
)

// A scheduler must not be newer than the API server. It may watch kinds that an older API server does not serve, and then it
// waits for them forever, without a message. A scheduler that emulates the API server's version watches only kinds of that
// version. kube-scheduler does so with --emulated-version. This program detects the version itself.

// emulatedVersionFlag is the name of kube-scheduler's flag.
const emulatedVersionFlag = "emulated-version"

// needs lists the kinds that kube-scheduler watches while a feature gate is on. If the API server does not serve such a kind,
// kube-scheduler never becomes ready.
var needs = []struct {
	gate     featuregate.Feature
	resource schema.GroupVersionResource
}{
	{kubefeatures.DRADeviceTaintRules, resourceapi.SchemeGroupVersion.WithResource("devicetaintrules")},
	{kubefeatures.GenericWorkload, schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups")},
	{kubefeatures.CompositePodGroup, schedulingv1alpha3.SchemeGroupVersion.WithResource("compositepodgroups")},
}

// adapt sets the feature gates. If the API server is older than this program and the user gives no --emulated-version, adapt
// first sets the emulated version. The returned function say logs the emulated version; the caller calls say after logging is
// set up, which depends on the gates.
func (o *options) adapt(ctx context.Context) (say func(klog.Logger), err error) {
	flag := o.Flags.FlagSet("feature gate").Lookup(emulatedVersionFlag)
	if o.WriteConfigTo != "" || flag.Changed {
		return func(klog.Logger) {}, o.ComponentGlobalsRegistry.Set()
	}
	config, err := o.clientConfig()
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	offered, err := skew.Await(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("%w; or set the version with --%s", err, emulatedVersionFlag)
	}
	if err := skew.Check(offered); err != nil {
		return nil, err
	}
	own := o.ComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).BinaryVersion()
	if say, err = o.emulate(offered, own); err != nil {
		return nil, err
	}
	return say, o.checkServed(client, offered)
}

// emulate sets the emulated version to the API server's version if that is older than this program's version. Then it sets the
// feature gates.
func (o *options) emulate(offered, own *version.Version) (say func(klog.Logger), err error) {
	say = func(klog.Logger) {}
	switch ownMinor := version.MajorMinor(own.Major(), own.Minor()); {
	case offered.LessThan(ownMinor):
		say = func(logger klog.Logger) {
			logger.Info("Emulating the older version of the API server", "emulated", offered, "binary", own)
		}
		if err := o.Flags.FlagSet("feature gate").Set(emulatedVersionFlag, basecompatibility.DefaultKubeComponent+"="+offered.String()); err != nil {
			return nil, err
		}
	case offered.GreaterThan(ownMinor.AddMinor(1)):
		say = func(logger klog.Logger) {
			logger.Info("Warning: the API server is newer by more than one minor version, which Kubernetes does not support", "apiServer", offered, "binary", own)
		}
	}
	if err := o.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("feature gates, with an API server that offers Kubernetes %s: %w", offered, err)
	}
	return say, nil
}

// checkServed returns an error if the API server does not serve a kind that the scheduler watches.
func (o *options) checkServed(client discovery.ServerResourcesInterface, offered *version.Version) error {
	var wanted []schema.GroupVersionResource
	if o.gates().Enabled(kubefeatures.DynamicResourceAllocation) {
		wanted = append(wanted, skew.Allocation...)
	}
	becauseOf := map[schema.GroupVersionResource]featuregate.Feature{}
	for _, need := range needs {
		if o.gates().Enabled(need.gate) {
			wanted = append(wanted, need.resource)
			becauseOf[need.resource] = need.gate
		}
	}
	missing, err := skew.Missing(client, wanted...)
	if err != nil || len(missing) == 0 {
		return err
	}
	described := make([]string, len(missing))
	for i, resource := range missing {
		described[i] = resource.GroupVersion().String() + " " + resource.Resource
		if gate, ok := becauseOf[resource]; ok {
			described[i] += fmt.Sprintf(" (watched because of the feature gate %s: turn it off with --feature-gates=%s=false)", gate, gate)
		}
	}
	return fmt.Errorf("the API server, which offers Kubernetes %s, does not serve %s", offered, strings.Join(described, ", "))
}

// clientConfig finds the API server as kube-scheduler does. It reads only the connection from the configuration file, because
// decoding the whole file needs the feature gates, which are not set yet.
func (o *options) clientConfig() (*restclient.Config, error) {
	kubeconfig := o.Deprecated.Kubeconfig
	if o.ConfigFile != "" {
		text, err := os.ReadFile(o.ConfigFile)
		if err != nil {
			return nil, err
		}
		var written configv1.KubeSchedulerConfiguration
		if err := yaml.Unmarshal(text, &written); err != nil {
			return nil, fmt.Errorf("decode %s: %w", o.ConfigFile, err)
		}
		kubeconfig = written.ClientConnection.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags(o.Master, kubeconfig)
	if err != nil {
		return nil, errors.Join(errors.New("find the API server"), err)
	}
	return restclient.AddUserAgent(config, "scheduler"), nil
}
