// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// TestStories runs each script in testdata/stories in a separate lab. testdata/README.md explains the commands of scripts.
func TestStories(t *testing.T) { runScripts(t, "stories", variant{profile: env.CelsetProfile}) }

// TestVariants runs the scripts in testdata/variants once for each variant.
func TestVariants(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) { runScripts(t, "variants", v) })
	}
}

func runScripts(t *testing.T, folder string, v variant) {
	commands := map[string]func(*testscript.TestScript, bool, []string){}
	for name := range scriptCommands {
		commands[name] = func(ts *testscript.TestScript, _ bool, args []string) { ts.Value(key).(*script).run(name, args) }
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", folder), Cmds: commands,
		Setup: func(of *testscript.Env) error {
			of.Values[key] = newScript(of.T().(testing.TB), v)
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if gate, found := strings.CutPrefix(condition, "has:"); found {
				return minor.Has(featuregate.Feature(gate)), nil
			}
			return map[string]bool{"constrained": v.constrained, "all": v.profile == allProfile}[condition], nil
		},
	})
}

// A script is the state of a running script.
type script struct {
	testing.TB
	*lab
	variant    variant
	topologies map[string]topology.Topology // by the prefix of their devices' names
	// words maps a word that is written in braces in the script to its replacement.
	words map[string]string
	// allocationBefore maps a claim to the allocation that the script has recorded. A later command requires that it is unchanged.
	allocationBefore map[string]*resourceapi.AllocationResult
}

// key is the key under which testscript stores the script.
const key = "script"

// finalizer keeps the object of a deleted pod, so that the pod seems to end slowly.
const finalizer = "celset.dev/test"

func newScript(t testing.TB, v variant) *script {
	return &script{TB: t, variant: v, topologies: map[string]topology.Topology{}, allocationBefore: map[string]*resourceapi.AllocationResult{}, words: map[string]string{
		"line": "\n", "frugalCost": fmt.Sprint(frugalCost), "briefSteps": fmt.Sprint(briefSteps),
	}}
}

// do runs commands, each written as in a script. Their arguments must not contain spaces.
func (s *script) do(commands ...string) {
	s.Helper()
	for _, command := range commands {
		words := strings.Fields(command)
		s.run(words[0], words[1:])
	}
}

func (s *script) run(command string, args []string) {
	s.Helper()
	for i := range args {
		args[i] = s.expand(args[i])
	}
	scriptCommands[command](s, args)
}

var (
	braces = regexp.MustCompile(`\{[a-zA-Z0-9-]+\}`)
	// inARowOf matches "row(PREFIX, N)", the short form of a constraint: N devices with this prefix must be in a row.
	inARowOf = regexp.MustCompile(`^row\((\w+), ?(\d+)\)$`)
)

func (s *script) expand(text string) string {
	return braces.ReplaceAllStringFunc(text, func(word string) string {
		if value, known := s.words[strings.Trim(word, "{}")]; known {
			return value
		}
		return word
	})
}

func (s *script) expression(text string) string {
	if row := inARowOf.FindStringSubmatch(text); row != nil {
		return env.Contiguous(s.words[row[1]], int(s.number(row[2])))
	}
	return text
}

func (s *script) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(s, err)
	return n
}

// arguments holds the arguments of a command that are not read yet.
type arguments struct {
	*script
	rest []string
}

func (a *arguments) next() string {
	require.NotEmpty(a, a.rest, "an argument is missing")
	first := a.rest[0]
	a.rest = a.rest[1:]
	return first
}

// option reports whether the next argument has the name. If so, it skips the argument.
func (a *arguments) option(name string) bool {
	if len(a.rest) == 0 || a.rest[0] != name {
		return false
	}
	a.rest = a.rest[1:]
	return true
}

// parts reads arguments that describe a claim.
func (a *arguments) parts() (parts []env.Part) {
	for len(a.rest) > 0 {
		switch option := a.next(); option {
		case "-want":
			name, count := a.next(), a.next()
			if count == "all" {
				parts = append(parts, env.RequestAll(name, a.next()))
			} else {
				parts = append(parts, env.Request(name, a.next(), a.number(count)))
			}
		case "-first":
			var alternatives []resourceapi.DeviceSubRequest
			name := a.next()
			for of := range strings.SplitSeq(a.next(), ",") {
				fields := strings.Fields(of)
				alternatives = append(alternatives, alternative(fields[0], fields[2], a.number(fields[1])))
			}
			parts = append(parts, firstAvailable(name, alternatives...))
		case "-one":
			parts = append(parts, env.One(a.device(a.next())))
		case "-select":
			expression := a.next()
			parts = append(parts, func(claim *resourceapi.DeviceClaim) {
				claim.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{env.Selector(expression)}
			})
		case "-admin":
			parts = append(parts, env.WithAdminAccess)
		case "-constrain", "-vary":
			name, expression := a.next(), a.expression(a.next())
			var over []string
			if a.option("-over") {
				over = strings.Split(a.next(), ",")
			}
			if option == "-constrain" || a.variant.constrained {
				parts = append(parts, env.Constrained(name, expression, over...))
			}
		case "-refer":
			parts = append(parts, env.Refer(a.next()))
		case "-match":
			parts = append(parts, env.MatchAttribute(a.next()))
		case "-distinct":
			parts = append(parts, env.DistinctAttribute(a.next()))
		case "-prefer":
			parts = append(parts, prefer(a.next(), a.next()))
		case "-define":
			parts = append(parts, env.Define(a.next(), a.expression(a.next())))
		case "-parameters":
			fields := map[string]string{}
			for field := range strings.SplitSeq(a.next(), ", ") {
				name, value, _ := strings.Cut(field, ": ")
				fields[name] = value
			}
			parts = append(parts, env.Configure(env.Parameters(fields)))
		default:
			require.Fail(a, "unknown option "+option)
		}
	}
	return parts
}

// device returns the published device with the name.
func (s *script) device(name string) topology.Device {
	for _, t := range s.topologies {
		if device, found := t.Device(name); found {
			return device
		}
	}
	require.Fail(s, "there is no device "+name)
	return topology.Device{}
}

// profiles maps the names that scripts use to profiles of the scheduler.
var profiles = map[string]string{
	"stock": env.StockProfile, "celset": env.CelsetProfile, "all": allProfile, "hasty": hastyProfile, "frugal": frugalProfile, "brief": briefProfile, "whole": wholeProfile,
}

// pod reads arguments that describe a pod.
func (a *arguments) pod(name string) *corev1.Pod {
	pod := env.Pod(name, a.variant.profile)
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: a.Namespace}
	pod.Labels = map[string]string{"name": name}
	for {
		switch {
		case a.option("-profile"):
			pod.Spec.SchedulerName = profiles[a.next()]
		case a.option("-on"):
			pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: a.next()}
		case a.option("-rank"):
			pod.Spec.PriorityClassName, pod.Spec.TerminationGracePeriodSeconds = a.Namespace+"-"+a.next(), ptr.To[int64](0)
		case a.option("-slow"):
			pod.Finalizers = []string{finalizer}
		default:
			return pod
		}
	}
}

func (s *script) create(pod *corev1.Pod, claims ...string) {
	uses := env.Pod("", "", claims...).Spec
	pod.Spec.ResourceClaims, pod.Spec.Containers = uses.ResourceClaims, uses.Containers
	s.createAsIs(pod)
}

func (s *script) createAsIs(pod *corev1.Pod) {
	env.Eventually(s, "the API server knows the PriorityClass", func(ctx context.Context) (string, error) {
		_, err := client().CoreV1().Pods(s.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return err.Error(), nil
		}
		return "", err
	})
}

// publish publishes the devices of a topology on the nodes that the next arguments name, or on all nodes. It creates the
// classes of the drivers.
func (a *arguments) publish(t topology.Topology, err error) {
	require.NoError(a, err)
	for _, driver := range t.Drivers() {
		prefix, _, _ := strings.Cut(driver, ".")
		a.words[prefix], a.topologies[prefix] = driver, t
	}
	for a.option("-without") {
		attribute := resourceapi.QualifiedName(a.next())
		delete(a.device(a.next()).Attributes, attribute)
	}
	nodes := a.Nodes
	if a.option("-on") {
		nodes = strings.Split(a.next(), ",")
	}
	if !a.option("-later") {
		a.Publish(a, t, nodes...)
	}
	if a.option("-classless") {
		return
	}
	for _, driver := range t.Drivers() {
		a.class(driver, driver)
	}
}

// class creates a class for the driver. The next arguments may add definitions of constraints.
func (a *arguments) class(name, driver string) {
	var config []resourceapi.DeviceConfiguration
	for a.option("-define") {
		// An expression may contain the name of a driver that an earlier argument has created.
		config = append(config, env.Definition(a.next(), a.expression(a.expand(a.next()))))
	}
	a.CreateNamedClass(a, name, driver, config...)
}

// occupy creates a pod that uses devices of a node. Without an option, its name is the name of the first device.
func (a *arguments) occupy(node string) {
	name := ""
	if a.option("-as") {
		name = a.next()
	}
	pod := a.pod(name)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	if name == "" {
		pod.Name, pod.Spec.SchedulerName = node+"-"+a.rest[0], env.StockProfile
	}
	var parts []env.Part
	for _, device := range a.rest {
		parts = append(parts, env.One(a.device(device)))
	}
	a.words["user-of-"+a.rest[0]] = pod.Name
	a.CreateClaim(a, pod.Name, parts...)
	a.create(pod, pod.Name)
	a.RequireRunning(a, pod.Name)
	require.ElementsMatch(a, a.rest, a.DevicesOf(a, pod.Name))
}

func (s *script) isThere(ctx context.Context, pod string) (there bool, err error) {
	live, err := client().CoreV1().Pods(s.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && live.DeletionTimestamp == nil, err
}

// scriptCommands maps the names of script commands to their functions.
var scriptCommands = map[string]func(*script, []string){
	"nodes": func(s *script, args []string) {
		name := s.Name()
		name = strings.ReplaceAll(strings.ToLower(name[strings.LastIndex(name, "/")+1:]), "_", "-")
		s.lab = newLab(s, name, int(s.number(args[0])))
		s.words["ns"] = s.Namespace
		for i, node := range s.Nodes {
			s.words[fmt.Sprint(i)] = node
		}
	},
	"ranks": func(s *script, _ []string) {
		for i := range 4 {
			class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.Namespace, i)}, Value: int32(i) * 100}
			if i == 0 {
				class.Value, class.PreemptionPolicy = 300, ptr.To(corev1.PreemptNever)
			}
			cluster.CreatePriorityClass(s, class)
		}
	},
	"ring": func(s *script, args []string) {
		a := &arguments{s, args[2:]}
		a.publish(topology.NewRing(s.Family(args[0]), int(s.number(args[1]))))
	},
	"mesh": func(s *script, args []string) {
		a := &arguments{s, args[3:]}
		a.publish(topology.NewMesh(s.Family(args[0]), int(s.number(args[1])), int(s.number(args[2]))))
	},
	"couples": func(s *script, args []string) {
		a := &arguments{s, args[3:]}
		a.publish(topology.NewCouples(s.Family(args[0]), s.Family(args[1]), int(s.number(args[2]))))
	},
	"publish": func(s *script, args []string) { s.Publish(s, s.topologies[args[0]], args[1:]...) },
	"class":   func(s *script, args []string) { (&arguments{s, args[2:]}).class(args[0], args[1]) },
	"define": func(s *script, args []string) {
		s.addToClass(s, args[0], env.Definition(args[1], s.expression(args[2])))
	},
	"occupy":   func(s *script, args []string) { (&arguments{s, args[1:]}).occupy(args[0]) },
	"claim":    func(s *script, args []string) { s.CreateClaim(s, args[0], (&arguments{s, args[1:]}).parts()...) },
	"allocate": func(s *script, args []string) { s.allocate(s, s.Claim(s, args[0]), args[1], args[2], args[3:]...) },
	"pod": func(s *script, args []string) {
		a := &arguments{s, args[1:]}
		s.create(a.pod(args[0]), a.rest...)
	},
	"run": func(s *script, args []string) {
		a := &arguments{s, args[1:]}
		pod := a.pod(args[0])
		s.CreateClaim(s, args[0], a.parts()...)
		s.create(pod, args[0])
	},
	"reserve": func(s *script, args []string) {
		claim := s.Claim(s, args[0])
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{
			APIGroup: "example.com", Resource: "jobs", Name: args[1], UID: types.UID(args[1]),
		})
		_, err := client().ResourceV1().ResourceClaims(s.Namespace).UpdateStatus(s.Context(), claim, metav1.UpdateOptions{})
		require.NoError(s, err)
	},
	"running": func(s *script, args []string) { s.RequireRunning(s, args...) },
	"refused": func(s *script, args []string) { s.RequireRefused(s, args[0], args[1:]...) },
	"event":   func(s *script, args []string) { s.AwaitEvent(s, s.Pod(s, args[0]), args[1], args[2:]...) },
	"has": func(s *script, args []string) {
		s.RequireRunning(s, args[0])
		require.Equal(s, args[1:], s.DevicesOf(s, args[0]))
	},
	"for": func(s *script, args []string) { require.Equal(s, args[1:], requestsOf(s.Claim(s, args[0]))) },
	"admin": func(s *script, args []string) {
		for _, result := range s.Claim(s, args[0]).Status.Allocation.Devices.Results {
			require.True(s, ptr.Deref(result.AdminAccess, false), result.Device)
		}
	},
	"keeps": func(s *script, args []string) {
		now := s.Claim(s, args[0]).Status.Allocation
		if before := s.allocationBefore[args[0]]; before != nil {
			require.Empty(s, cmp.Diff(before, now))
		}
		s.allocationBefore[args[0]] = now
	},
	"at": func(s *script, args []string) { require.Equal(s, args[1], s.Pod(s, args[0]).Spec.NodeName) },
	"users": func(s *script, args []string) {
		require.Len(s, s.Claim(s, args[0]).Status.ReservedFor, int(s.number(args[1])))
	},
	"pending": func(s *script, args []string) {
		for _, pod := range args {
			require.Equal(s, corev1.PodPending, s.Pod(s, pod).Status.Phase)
		}
	},
	"delete": func(s *script, args []string) {
		for _, pod := range args {
			s.DeletePod(s, pod)
		}
	},
	"freed": func(s *script, args []string) {
		for _, claim := range args {
			s.RequireFreed(s, claim)
		}
	},
	"unclaim": func(s *script, args []string) {
		require.NoError(s, client().ResourceV1().ResourceClaims(s.Namespace).Delete(s.Context(), args[0], metav1.DeleteOptions{}))
	},
	"gone": func(s *script, args []string) {
		for _, name := range args {
			env.Eventually(s, "pod "+name+" goes", func(ctx context.Context) (string, error) { return s.exists(ctx, name) })
		}
	},
	// With the option -some N, exactly N of the named pods must exist.
	"there": func(s *script, args []string) {
		want, names := len(args), args
		if args[0] == "-some" {
			want, names = int(s.number(args[1])), args[2:]
		}
		there := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			is, err := s.isThere(s.Context(), name)
			require.NoError(s, err)
			return !is
		})
		require.Len(s, there, want, "%v", there)
	},
	"ending": func(s *script, args []string) {
		s.EventuallyPod(s, args[0], "ending", func(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.DeletionTimestamp != nil, nil })
	},
	"let": func(s *script, args []string) {
		pod := s.Pod(s, args[0])
		require.NotNil(s, pod.DeletionTimestamp)
		pod.Finalizers = nil
		_, err := client().CoreV1().Pods(s.Namespace).Update(s.Context(), pod, metav1.UpdateOptions{})
		require.NoError(s, err)
	},
	"apply": func(s *script, args []string) { s.ApplyText(s, args[0]) },
}
