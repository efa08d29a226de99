// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
)

// schedulerConfig is the default of --scheduler-config, relative to the module root.
const schedulerConfig = "manifests/scheduler/config.yaml"

// upFlags holds the flags of the command up.
type upFlags struct {
	binDir          string
	dataDir         string
	schedulerConfig string
	featureGates    map[string]string
	runtimeConfig   []string
	leaderElect     bool
	webhook         bool
}

func (f *upFlags) addTo(cmd *cobra.Command) {
	addBinDirFlag(cmd, &f.binDir)
	addDataDirFlag(cmd, &f.dataDir)
	cmd.Flags().StringToStringVar(&f.featureGates, "feature-gates", nil, "feature gates as NAME=true: those of celset are for the scheduler, those of Kubernetes for the API server and the controller manager, too")
	cmd.Flags().StringSliceVar(&f.runtimeConfig, "runtime-config", nil, "further API versions that the API server is to serve, such as resource.k8s.io/v1alpha3=true")
	cmd.Flags().BoolVar(&f.leaderElect, "leader-elect", false, "have the scheduler elect a leader, as in a production cluster")
	cmd.Flags().BoolVar(&f.webhook, "webhook", false, "run celset-webhook too, which refuses mistakes when objects are created")
	cmd.Flags().StringVar(&f.schedulerConfig, "scheduler-config", "", "KubeSchedulerConfiguration of celset-scheduler; its clientConnection.kubeconfig is replaced (default "+schedulerConfig+" in the source tree)")
}

func addDataDirFlag(cmd *cobra.Command, dataDir *string) {
	cmd.Flags().StringVar(dataDir, "data-dir", "", "directory to keep the cluster's data in (default: a temporary one, removed at the end)")
}

func newUpCommand() *cobra.Command {
	cmd := newCommand("up", "Run a cluster with celset-scheduler until interrupted", &upFlags{}, up)
	cmd.AddCommand(newUpHubCommand())
	return cmd
}

// up runs a cluster until the context ends, and then returns nil. If a component fails, it returns an error.
func up(ctx context.Context, flags *upFlags, out, progress io.Writer) error {
	cp, err := flags.start(ctx, progress, forUsers...)
	if err != nil {
		return err
	}
	defer cp.Stop()
	if err := printUsage(out, cp); err != nil {
		return err
	}
	return cp.Wait(ctx)
}

// forUsers lists programs that users of the cluster need. They must be in one directory, because kubectl finds its plugin
// through PATH.
var forUsers = []string{controlplane.Kubectl, "kubectl-celset"}

// start builds the cluster's programs and the further binaries, and starts the cluster with celset-scheduler. The caller must
// stop the cluster.
func (f *upFlags) start(ctx context.Context, progress io.Writer, binaries ...string) (*controlplane.ControlPlane, error) {
	config, err := f.schedulerConfigPath()
	if err != nil {
		return nil, err
	}
	gates, err := f.gates()
	if err != nil {
		return nil, err
	}
	binaries = slices.Concat(binaries, clusterBinaries)
	if f.webhook {
		binaries = append(binaries, webhookProgram)
	}
	binDir, err := build(ctx, f.binDir, progress, binaries...)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "starting the control plane: about ten seconds")
	options := controlplane.Options{BinDir: binDir, DataDir: f.dataDir, Progress: progress, FeatureGates: gates.kubernetes}
	if len(f.runtimeConfig) > 0 {
		options.APIServerArgs = []string{"--runtime-config=" + strings.Join(append(f.runtimeConfig, podGroupsVersion), ",")}
	}
	if f.webhook {
		options.Users = []controlplane.User{{Name: webhookUser}}
	}
	cp, err := startCluster(ctx, options, controlplane.SchedulerOptions{ConfigFile: config, FeatureGates: gates.scheduler, LeaderElect: f.leaderElect})
	if err != nil || !f.webhook {
		return cp, err
	}
	if err := startWebhook(ctx, cp); err != nil {
		cp.Stop()
		return nil, err
	}
	return cp, nil
}

// gates holds the feature gates for Kubernetes' programs and for celset-scheduler. celset-scheduler gets all gates; Kubernetes'
// programs don't accept celset's gates.
type gates struct{ kubernetes, scheduler map[string]bool }

// gates splits the gates in the flag --feature-gates.
func (f *upFlags) gates() (gates, error) {
	result := gates{map[string]bool{}, map[string]bool{}}
	for name, value := range f.featureGates {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return gates{}, fmt.Errorf("--feature-gates: %s=%s must be true or false", name, value)
		}
		if result.scheduler[name] = on; !slices.Contains(celsetGates, name) {
			result.kubernetes[name] = on
		}
	}
	return result, nil
}

// celsetGates are the feature gates that only celset-scheduler has.
var celsetGates = []string{v1alpha1.FeatureGate, v1alpha1.NodeSetFeatureGate, "CelsetDevicePreemption"}

// podGroupsVersion is the argument of --runtime-config that makes the API server serve PodGroups. By default it does not serve
// this version.
const podGroupsVersion = "scheduling.k8s.io/v1beta1=true"

var clusterBinaries = []string{
	controlplane.Etcd, controlplane.KubeAPIServer, controlplane.KubeControllerManager, controlplane.Kwok, controlplane.CelsetScheduler,
}

// startCluster starts a control plane and celset-scheduler from existing binaries. The caller must stop the cluster.
func startCluster(ctx context.Context, options controlplane.Options, scheduler controlplane.SchedulerOptions) (*controlplane.ControlPlane, error) {
	options.Prebuilt = true
	// Node set constraints need PodGroups. Gates and flags that the caller sets override these defaults.
	options.FeatureGates = withDefaults(options.FeatureGates, podGroups())
	options.APIServerArgs = append([]string{"--runtime-config=" + podGroupsVersion}, options.APIServerArgs...)
	cp, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := installDefinitions(ctx, cp); err != nil {
		cp.Stop()
		return nil, err
	}
	scheduler.FeatureGates = withDefaults(scheduler.FeatureGates, podGroups())
	for _, name := range celsetGates {
		scheduler.FeatureGates = withDefaults(scheduler.FeatureGates, map[string]bool{name: true})
	}
	if _, err := cp.StartScheduler(ctx, scheduler); err != nil {
		cp.Stop()
		return nil, err
	}
	return cp, nil
}

// definitions is the file with the CustomResourceDefinition of DeviceAttributes, below the module root.
const definitions = "manifests/scheduler/crds/celset.dev_deviceattributes.yaml"

// installDefinitions installs the kinds that the scheduler reads.
func installDefinitions(ctx context.Context, cp *controlplane.ControlPlane) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(root, definitions))
	if err != nil {
		return err
	}
	return hub.InstallDefinitions(ctx, cp.RESTConfig(), manifest)
}

// withDefaults returns the gates, plus the defaults of other gates.
func withDefaults(gates, defaults map[string]bool) map[string]bool {
	result := maps.Clone(defaults)
	maps.Copy(result, gates)
	return result
}

func podGroups() map[string]bool {
	return map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true}
}

// schedulerConfigPath returns the path of the scheduler's configuration. It returns an error if the file does not exist, so
// that up fails before it builds anything.
func (f *upFlags) schedulerConfigPath() (string, error) {
	path := f.schedulerConfig
	if path == "" {
		root, err := controlplane.ModuleRoot()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, schedulerConfig)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("scheduler configuration: %w", err)
	}
	return path, nil
}

func printUsage(out io.Writer, cp *controlplane.ControlPlane) error {
	_, err := fmt.Fprintf(out, `The cluster is up; interrupt (Ctrl-C) to stop it. It has no nodes yet: those that
carry the annotation %[1]s=%[2]s become ready, and their pods run.

%[3]s`, controlplane.KwokNodeAnnotation, controlplane.KwokNodeValue, usage(cp))
	return err
}

// usage returns the commands that a user runs in another terminal to reach the control plane.
func usage(cp *controlplane.ControlPlane) string {
	return fmt.Sprintf(`  logs        %[2]s

In another terminal:

  export KUBECONFIG=%[1]s
  export PATH=%[3]s:$PATH        # kubectl, and its plugin kubectl celset
  kubectl get namespaces
`, cp.Kubeconfig(), cp.LogDir(), filepath.Dir(cp.Binary(controlplane.Kubectl)))
}
