// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/testing/defaults"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"
)

// runScheduler runs Kubernetes' scheduler until the test ends, with the plugin in the place of
// upstream's, which is the first after filters, or else the last.
func runScheduler(t *testing.T, client kubernetes.Interface, isFirst bool, newPlugin frameworkruntime.PluginFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	plugins := defaults.PluginsV1.DeepCopy()
	plugins.MultiPoint.Enabled = append(slices.DeleteFunc(plugins.MultiPoint.Enabled, func(p config.Plugin) bool { return p.Name == "DynamicResources" }),
		config.Plugin{Name: Name, Weight: 2})
	if isFirst {
		plugins.PostFilter.Enabled = []config.Plugin{{Name: Name}}
	}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	s, err := scheduler.New(ctx, client, informers, nil, schedulerprofile.NewRecorderFactory(broadcaster),
		scheduler.WithProfiles(config.KubeSchedulerProfile{SchedulerName: "default-scheduler", Plugins: plugins, PluginConfig: defaults.PluginConfigsV1}),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{Name: newPlugin}))
	require.NoError(t, err)
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	require.NoError(t, s.WaitForHandlersSync(ctx))
	go s.Run(ctx)
}
