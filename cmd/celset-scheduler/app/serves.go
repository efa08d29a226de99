// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	kubeschedulerconfig "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/internal/served/leases"
	"github.com/celset/celset/internal/version"
	"github.com/celset/celset/plugin"
)

// publishTimeout limits how long a new leader tries to publish its profiles.
const publishTimeout = time.Minute

// publisher returns a function that publishes on the Lease the profiles whose pods may use constraints. The caller calls the
// function when the scheduler becomes the leader.
func publisher(ctx context.Context, completed *schedulerconfig.CompletedConfig) (func(), error) {
	annotation, err := serves(completed)
	if err != nil {
		return nil, err
	}
	elected := completed.ComponentConfig.LeaderElection
	return func() {
		var last error
		if err := wait.PollUntilContextTimeout(ctx, time.Second, publishTimeout, true, func(ctx context.Context) (bool, error) {
			last = leases.Publish(ctx, completed.Client, elected.ResourceNamespace, elected.ResourceName, annotation)
			return last == nil, nil
		}); err != nil && ctx.Err() == nil {
			unpublished(ctx, last, elected.ResourceNamespace, elected.ResourceName)
		}
	}, nil
}

// publishUnelected publishes the profiles of a scheduler without leader election until ctx ends.
func publishUnelected(ctx context.Context, completed *schedulerconfig.CompletedConfig) error {
	annotation, err := serves(completed)
	if err != nil {
		return err
	}
	elected, name := completed.ComponentConfig.LeaderElection, wellknown.LeaseScheduler
	if elected.ResourceName != kubeschedulerconfig.SchedulerDefaultLockObjectName {
		name = cmp.Or(elected.ResourceName, name)
	}
	namespace := cmp.Or(elected.ResourceNamespace, metav1.NamespaceSystem)
	logged := false
	go leases.Renew(ctx, completed.Client, namespace, name, annotation, func(err error) {
		if err != nil && !logged && ctx.Err() == nil {
			unpublished(ctx, err, namespace, name)
		}
		logged = err != nil
	})
	return nil
}

func unpublished(ctx context.Context, err error, namespace, name string) {
	klog.FromContext(ctx).Error(err, "Could not write the profiles to the scheduler's Lease, so kubectl celset can't check them", "lease", klog.KRef(namespace, name))
}

// serves returns the value of the Lease annotation: the version, the feature gate, and the profiles that enable the plugin.
func serves(completed *schedulerconfig.CompletedConfig) (string, error) {
	scheduler := &served.Scheduler{Version: version.Get(), Constraints: utilfeature.DefaultFeatureGate.Enabled(plugin.DRACELDeviceConstraint)}
	for i := range completed.ComponentConfig.Profiles {
		profile := &completed.ComponentConfig.Profiles[i]
		if !enables(profile.Plugins) {
			continue
		}
		args, err := argsOf(profile)
		if err != nil {
			return "", err
		}
		scheduler.Profiles = append(scheduler.Profiles, served.Profile{SchedulerName: profile.SchedulerName, Args: *args})
	}
	return served.Encode(scheduler)
}

// enables reports whether a profile enables the plugin.
func enables(plugins *config.Plugins) bool {
	return plugins != nil && slices.ContainsFunc(append(slices.Clone(plugins.MultiPoint.Enabled), plugins.PreFilter.Enabled...),
		func(p config.Plugin) bool { return p.Name == plugin.Name })
}

// argsOf returns the arguments of the plugin in a profile, with defaults.
func argsOf(profile *config.KubeSchedulerProfile) (*configv1alpha1.DynamicResourcesCELArgs, error) {
	var raw []byte
	for _, c := range profile.PluginConfig {
		if unknown, ok := c.Args.(*runtime.Unknown); ok && c.Name == plugin.Name {
			raw = unknown.Raw
		}
	}
	return configv1alpha1.DecodeArgs(raw)
}
