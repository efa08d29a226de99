// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/internal/served/leases"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/internal/clusterstate"
)

const fitLong = `
The command runs the scheduler's allocator for each node, with the current ResourceSlices,
DeviceClasses and allocations, and with the budgets that the scheduler publishes in its Lease. For a
template, it assumes a claim that was created from the template. It creates no objects.

For a pod, the command also checks:

- the claims, including the claim that the scheduler creates for extended resources
- the node selector, the node affinity and the tolerations
- CPU, memory, other resources and host ports
- the scheduling gates, the group and the scheduler name
- with a dry run, whether the API server admits the claims from templates

The output lists other fields that limit the nodes of the pod, such as volumes, as not checked. It
quotes the condition PodScheduled and the latest events of the pod.

For a PodGroup with a node set constraint, the output contains the nodes that would be chosen for the
pods, or the reason why no nodes would be chosen. If you name no object, and all pods in the files
belong to one PodGroup, the command is about this PodGroup.

For a Placement, on a hub or in files, the command makes the decision that celset-placement would
make now.
`

const simulateLong = `Show the nodes on which a pod or a claim would get devices now, and the devices.
` + fitLong + `
For devices with a preference, the output contains the value of the preference. It also shows
whether the set of devices is the best on the node, or only the best that the search found.
` + exitCodes

const simulateExample = `  # Simulate a pending pod
  kubectl celset simulate pod/train

  # Simulate a template that is not in the cluster, with the devices of the cluster
  kubectl celset simulate -f template.yaml --with-cluster

  # Simulate the template in several clusters, by the contexts of the kubeconfig
  kubectl celset simulate -f template.yaml --contexts east,west

  # Simulate a claim with files only
  kubectl celset simulate -f claims.yaml -f slices.yaml -f classes.yaml claim/mine`

const explainLong = `Show why a pod or a claim gets devices on some nodes, and not on others.

For each node that does not fit, the output contains:

- the number of devices that match, and the number of matching devices that are free
- the first condition that no set of these devices satisfies: a constraint, or a condition of a CEL
  constraint
- the claims that are in the way

Nodes without any device for the claims are only counted.
` + fitLong + `
For a claim that already has devices, the output contains the values of its preferences for three
sets of devices: its own set, the best set among its own and the free devices, and the best set if
all devices of the node were free.
` + exitCodes

const explainExample = `  # Explain why a pod is pending
  kubectl celset explain pod/train

  # Explain why a claim does not fit on a node, as YAML
  kubectl celset explain claim/mine --node node-1 -o yaml`

func newSimulateCommand(o *options) *cobra.Command {
	return newFitCommand(o, &cobra.Command{
		Use:     "simulate [NAME | pod/NAME | claim/NAME | template/NAME | podgroup/NAME | placement/NAME]",
		Short:   "Show the nodes and devices that a pod or a claim would get",
		Long:    simulateLong,
		Example: simulateExample,
	}, false)
}

func newExplainCommand(o *options) *cobra.Command {
	return newFitCommand(o, &cobra.Command{
		Use:     "explain [NAME | pod/NAME | claim/NAME | template/NAME | podgroup/NAME | placement/NAME]",
		Short:   "Explain why a pod or a claim gets no devices",
		Long:    explainLong,
		Example: explainExample,
	}, true)
}

// newFitCommand adds the flags and the code that the commands simulate and explain share. why is set for explain.
func newFitCommand(o *options, command *cobra.Command, why bool) *cobra.Command {
	f := &fitOptions{options: o, args: &configv1alpha1.DynamicResourcesCELArgs{}, timeout: time.Minute}
	configv1alpha1.SetDefaults(f.args)
	f.asked.Why = why
	command.Args = cobra.MaximumNArgs(1)
	command.RunE = func(command *cobra.Command, args []string) error {
		return f.run(command.Context(), command.Flags(), args)
	}
	f.addFlags(command)
	return command
}

// fitOptions holds the options of simulate and explain.
type fitOptions struct {
	*options
	asked fit.Options
	// args are the arguments of the scheduler's plugin: the defaults, changed by flags of this command.
	args *configv1alpha1.DynamicResourcesCELArgs
	// schedulers is the namespace of the Leases on which schedulers publish their profiles.
	schedulers string
	timeout    time.Duration
	// clusters are the kubeconfig contexts of the clusters to ask. Empty means the current context.
	clusters []string
	// managedClusters limits the answer about a Placement to these clusters. Empty means all clusters.
	managedClusters []string
}

func (f *fitOptions) addFlags(command *cobra.Command) {
	f.options.addFlags(command, "json", "yaml")
	flags := command.Flags()
	f.gates.addFlag(flags, f.ErrOut)
	flags.StringSliceVar(&f.asked.Nodes, "node", nil, "Check only these nodes.")
	flags.DurationVar(&f.timeout, "timeout", f.timeout, "Time limit for all nodes together. With --contexts, the limit applies to each cluster, including the time to read it.")
	flags.StringSliceVar(&f.clusters, "contexts", nil, "Contexts of the kubeconfig. The command checks the objects in each of these clusters.")
	flags.StringSliceVar(&f.managedClusters, "managed-clusters", nil, "For a Placement, show only these ManagedClusters.")
	f.addSelector(flags, "Label selector of pods in the namespace, instead of a name. The command shows each of these pods.")
	flags.StringVar(&f.schedulers, "scheduler-namespace", metav1.NamespaceSystem, "Namespace of the Leases in which celset-schedulers publish their profiles.")
	flags.DurationVar(&f.args.FilterTimeout.Duration, "filter-timeout", f.args.FilterTimeout.Duration, "Time limit for one node. The default is the scheduler's value, if it is known.")
	flags.Int64Var(f.args.Budget.Cost, "cost-budget", *f.args.Budget.Cost, "Value for budget.cost of the plugin's arguments, in CEL cost units. The default is the scheduler's value, if it is known.")
	flags.Int64Var(f.args.Budget.Steps, "step-budget", *f.args.Budget.Steps, "Value for budget.steps of the plugin's arguments. The default is the scheduler's value, if it is known.")
	flags.StringVar((*string)(&f.args.DefaultPreference), "default-preference", "", policiesHelp())
}

// policiesHelp describes the values of --default-preference for the help text.
func policiesHelp() string {
	var text strings.Builder
	text.WriteString("The policy for claims without a preference. The default is the scheduler's value, if it is known.")
	for _, policy := range v1alpha1.Policies {
		fmt.Fprintf(&text, " %s takes the set %s.", policy.Name, policy.Description)
	}
	return text.String()
}

// validate rejects values that the plugin would reject.
func (f *fitOptions) validate() error {
	if policy := f.args.DefaultPreference; policy != "" && !slices.Contains(v1alpha1.PreferencePolicies, policy) {
		return fmt.Errorf("--default-preference %s: must be one of %v", policy, v1alpha1.PreferencePolicies)
	}
	if *f.args.Budget.Cost < 1 || *f.args.Budget.Steps < 1 {
		return errors.New("--cost-budget and --step-budget must be positive")
	}
	return nil
}

func (f *fitOptions) run(ctx context.Context, flags *pflag.FlagSet, args []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	if f.selector != "" && (len(args) > 0 || flags.Changed("contexts")) {
		return errors.New("--selector: can't be used with a name or --contexts, because it selects pods of one cluster: remove one of them")
	}
	if flags.Changed("contexts") {
		return f.inClusters(ctx, flags, args)
	}
	if isAboutPlacements(args) {
		return f.decide(ctx, args)
	}
	if flags.Changed("managed-clusters") {
		return errors.New("--managed-clusters: applies only to Placements: to check another cluster, use --context or --contexts")
	}
	f.needsDevices, f.withoutCluster = true, flags.Changed("with-cluster") && !f.withCluster
	f.groups, f.running = isAboutGroup(args), true
	state, err := f.state(ctx)
	if err != nil {
		return err
	}
	if f.selector != "" {
		return f.reportOnSelected(ctx, flags, state)
	}
	if f.groups || len(args) == 0 && gang.Only(state) != nil {
		return f.group(ctx, flags, state, strings.Join(args, ""))
	}
	report, err := f.reportOn(ctx, flags, state, args)
	if err != nil {
		return err
	}
	return ended(f.data(report, report.Print)(f.Out), report.Incomplete, report.Fits())
}

// report reads the objects, and computes where the claims of a pod, or a single claim, would fit.
func (f *fitOptions) report(ctx context.Context, flags *pflag.FlagSet, args []string) (*fit.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("--timeout: the time limit of %s was exceeded: set a higher limit", f.timeout))
	defer cancel()
	f.running = true
	state, err := f.state(ctx)
	if err != nil {
		return nil, err
	}
	return f.reportOn(ctx, flags, state, args)
}

func (f *fitOptions) reportOn(ctx context.Context, flags *pflag.FlagSet, state *clusterstate.State, args []string) (*fit.Report, error) {
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	subject, err := state.Subject(strings.Join(args, ""), namespace)
	if err != nil {
		return nil, err
	}
	if len(subject.Claims) == 0 && subject.Missing == nil {
		return nil, fmt.Errorf("%s has no claims, and no extended resources of a DeviceClass", subject)
	}
	known, err := f.clusterInfoOf(ctx, subject)
	if err != nil {
		return nil, err
	}
	f.asked.Features, f.asked.Args = f.gates.features(), f.argsWith(known.profile, flags)
	progress := f.newProgress("nodes")
	defer progress.end()
	f.asked.Progress = progress.at
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("--timeout: the time limit of %s was exceeded: set a higher limit", f.timeout))
	defer cancel()
	report, err := fit.Run(ctx, state, subject, f.asked)
	if err != nil {
		return nil, err
	}
	progress.end()
	known.addTo(&report.Scheduling, state, subject)
	return report, known.admit(ctx, &report.Scheduling, subject)
}

// ended returns the exit error after a report was printed: err, errIncomplete, errNegative or nil.
func ended(err error, incomplete string, positive bool) error {
	switch {
	case err != nil:
		return err
	case incomplete != "":
		return errIncomplete
	case !positive:
		return errNegative
	default:
		return nil
	}
}

// argsWith returns the plugin's arguments from the scheduler's profile, or the defaults if profile is nil. Flags that the user
// set override them.
func (f *fitOptions) argsWith(profile *served.Profile, flags *pflag.FlagSet) *configv1alpha1.DynamicResourcesCELArgs {
	if profile == nil {
		return f.args
	}
	args := profile.Args
	for flag, take := range map[string]func(){
		"filter-timeout":     func() { args.FilterTimeout = f.args.FilterTimeout },
		"cost-budget":        func() { args.Budget.Cost = f.args.Budget.Cost },
		"step-budget":        func() { args.Budget.Steps = f.args.Budget.Steps },
		"default-preference": func() { args.DefaultPreference = f.args.DefaultPreference },
	} {
		if flags.Changed(flag) {
			take()
		}
	}
	return &args
}

// clusterInfo holds facts from the cluster about a pod's scheduling, other than devices.
type clusterInfo struct {
	namespace  string
	schedulers served.Schedulers
	profile    *served.Profile
	events     []corev1.Event
	err        error
	// admitted holds the contents of the claims that admit has already tried by a dry run.
	admitted []string
	// client is nil if the command read only files.
	client kubernetes.Interface
}

// clusterInfoOf reads the configurations that schedulers publish, and the pod's events. If reading them fails, the failure is
// stored in the result, and the command continues.
func (f *fitOptions) clusterInfoOf(ctx context.Context, subject *clusterstate.Subject) (*clusterInfo, error) {
	k := &clusterInfo{namespace: f.schedulers}
	if f.readsFiles() && !f.withCluster {
		k.err = errNoCluster
		return k, nil
	}
	config, err := f.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if k.client = client; subject.Pod == nil {
		return k, nil
	}
	k.schedulers, k.err = leases.Read(ctx, client, f.schedulers)
	_, k.profile = k.schedulers.Profile(subject.Pod.Spec.SchedulerName)
	if subject.Pod.UID != "" {
		about := fields.Set{"involvedObject.uid": string(subject.Pod.UID)}.AsSelector().String()
		if list, err := client.CoreV1().Events(subject.Pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: about, Limit: maxEvents}); err == nil {
			k.events = list.Items
		}
	}
	return k, nil
}

// maxEvents is the maximum number of events to read.
const maxEvents = 100

var errNoCluster = errors.New("no cluster was read")

func (k *clusterInfo) addTo(report *fit.Scheduling, state *clusterstate.State, subject *clusterstate.Subject) {
	report.AddServed(state, subject, k.schedulers, k.namespace, k.err)
	report.AddEvents(k.events)
}
