// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/internal/version"
	"github.com/celset/celset/plugin"
)

// publishTimeout is how long it is tried to publish what is served.
const publishTimeout = time.Minute

// publisher returns what publishes what the scheduler serves once it leads.
func publisher(ctx context.Context, completed *schedulerconfig.CompletedConfig) (func(), error) {
	scheduler := &served.Scheduler{Version: version.Get(), Constraints: utilfeature.DefaultFeatureGate.Enabled(plugin.DRACELDeviceConstraint)}
	for i := range completed.ComponentConfig.Profiles {
		profile := &completed.ComponentConfig.Profiles[i]
		if !enables(profile.Plugins) {
			continue
		}
		args, err := argsOf(profile)
		if err != nil {
			return nil, err
		}
		scheduler.Profiles = append(scheduler.Profiles, served.Profile{SchedulerName: profile.SchedulerName, Args: *args})
	}
	annotation, err := served.Encode(scheduler)
	if err != nil {
		return nil, err
	}
	elected := completed.ComponentConfig.LeaderElection
	return func() {
		var last error
		if err := wait.PollUntilContextTimeout(ctx, time.Second, publishTimeout, true, func(ctx context.Context) (bool, error) {
			last = served.Publish(ctx, completed.Client, elected.ResourceNamespace, elected.ResourceName, annotation)
			return last == nil, nil
		}); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(last, "The scheduler's Lease does not say which profiles it serves: kubectl celset can't check it",
				"lease", klog.KRef(elected.ResourceNamespace, elected.ResourceName))
		}
	}, nil
}

// enables reports whether a profile has the plugin.
func enables(plugins *config.Plugins) bool {
	return plugins != nil && slices.ContainsFunc(append(slices.Clone(plugins.MultiPoint.Enabled), plugins.PreFilter.Enabled...),
		func(p config.Plugin) bool { return p.Name == plugin.Name })
}

// argsOf are the arguments of the plugin in a profile, with defaults.
func argsOf(profile *config.KubeSchedulerProfile) (*configv1alpha1.DynamicResourcesCELArgs, error) {
	var raw []byte
	for _, c := range profile.PluginConfig {
		if unknown, ok := c.Args.(*runtime.Unknown); ok && c.Name == plugin.Name {
			raw = unknown.Raw
		}
	}
	return configv1alpha1.DecodeArgs(raw)
}
