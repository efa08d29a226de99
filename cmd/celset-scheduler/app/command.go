// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	kubeapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeoptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/utils/clock"

	"github.com/celset/celset/internal/serving"
	"github.com/celset/celset/internal/version"
	"github.com/celset/celset/plugin"
	"github.com/celset/celset/plugin/guard"
)

// maxConnections limits concurrent connections, and so memory: kube-scheduler's server accepts headers of up to a MiB.
const maxConnections = 32

// options holds kube-scheduler's options and the options of this program.
type options struct {
	*kubeoptions.Options
	hub     hubOptions
	plugins []kubeapp.Option
}

// NewCommand returns the command, with further plugins. It adds the plugin's feature gates to the gates of the process, so it
// must be called only once.
func NewCommand(plugins ...kubeapp.Option) *cobra.Command {
	utilruntime.Must(plugin.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	o := &options{Options: kubeoptions.NewOptions(), plugins: plugins}
	cmd := &cobra.Command{
		Use: "celset-scheduler",
		Long: `Run kube-scheduler with the plugins of celset.

DynamicResourcesCEL allocates devices in the profiles that enable it instead of DynamicResources.
DynamicResourcesCELPreference scores nodes by preferences. The command has kube-scheduler's flags,
and the flags --hub-kubeconfig and --cluster-name.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// --version=raw prints the full version of Kubernetes.
			if cmd.Flags().Lookup("version").Value.String() == "true" {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), cmd.Name(), "version", version.Text())
				return err
			}
			verflag.PrintAndExitIfRequested()
			if err := o.hub.validate(); err != nil {
				return err
			}
			ctx := server.SetupSignalContext()
			// The logging options depend on feature gates, so adapt sets the gates first. say logs later how it set them.
			say, err := o.adapt(ctx)
			if err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(o.Logs, o.gates()); err != nil {
				return err
			}
			say(klog.FromContext(ctx))
			cliflag.PrintFlags(cmd.Flags())
			return o.run(ctx)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	global := o.Flags.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, cmd.Name(), logs.SkipLoggingConfigurationFlags())
	o.hub.addFlags(o.Flags.FlagSet("celset"))
	for _, flags := range o.Flags.FlagSets {
		cmd.Flags().AddFlagSet(flags)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *o.Flags, columns)
}

func (o *options) gates() featuregate.FeatureGate {
	return o.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
}

// run schedules until ctx ends.
func (o *options) run(ctx context.Context) error {
	if o.InformerName == nil {
		name, err := cache.NewInformerName("kube-scheduler")
		if err != nil {
			return err
		}
		o.InformerName = name
	}
	guard := guard.New(clock.RealClock{})
	var registered []kubeapp.Option
	for name, factory := range plugin.NewFactories(utilfeature.DefaultFeatureGate, guard) {
		registered = append(registered, kubeapp.WithPlugin(name, factory))
	}
	registered = append(registered, o.plugins...)
	config, scheduler, err := kubeapp.Setup(ctx, o.Options, registered...)
	if err != nil {
		return err
	}
	if secure := config.SecureServing; secure != nil {
		secure.Listener = serving.Limit(secure.Listener, maxConnections)
	}
	if err := watch(ctx, config, scheduler, guard, o.hub); err != nil {
		return err
	}
	if gates, ok := o.gates().(featuregate.MutableFeatureGate); ok {
		gates.AddMetrics()
	}
	o.ComponentGlobalsRegistry.AddMetrics()
	if err := version.RegisterBuildInfo(legacyregistry.Registerer()); err != nil {
		return err
	}
	return kubeapp.Run(ctx, config, scheduler)
}
