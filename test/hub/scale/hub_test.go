// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// namespace is the namespace of all Placements. The ManagedClusterSet of the generated clusters is bound to it.
const namespace = "scale"

func TestMain(m *testing.M) { env.Main(m) }

// hub is a real API server with the kinds of Open Cluster Management, without controllers.
type hub struct{ *env.Hub }

// newHub starts a hub that ends with the test. Its API server accepts objects in namespaces that don't exist, so that the test
// need not create thousands of namespaces.
func newHub(t testing.TB, options controlplane.Options) *hub {
	t.Helper()
	options.APIServerArgs = append(options.APIServerArgs, "--disable-admission-plugins=NamespaceLifecycle")
	h := &hub{env.StartHub(t, options)}
	require.NoError(t, h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	require.NoError(t, h.Create(t.Context(), &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: fleet.ClusterSet}}))
	require.NoError(t, h.bind(t.Context(), fleet.ClusterSet))
	return h
}

// bind binds the ManagedClusterSet to the namespace.
func (h *hub) bind(ctx context.Context, name string) error {
	return h.Create(ctx, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name},
	})
}

// each calls do with the numbers from 0 to n-1, several at a time.
func each(t testing.TB, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(24)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	require.NoError(t, group.Wait())
}

// join creates the generated clusters with the numbers first to last-1.
func (h *hub) join(t testing.TB, first, last int) {
	t.Helper()
	now := time.Now()
	each(t, last-first, func(ctx context.Context, i int) error {
		generated := fleet.Cluster(first+i, now)
		generated.ObjectMeta = metav1.ObjectMeta{Name: generated.Name, Labels: generated.Labels}
		return h.put(ctx, generated, &generated.Status)
	})
}

// put creates an object with its status, which takes two requests.
func (h *hub) put(ctx context.Context, object client.Object, status any) error {
	wanted := object.DeepCopyObject().(client.Object)
	if err := h.Create(ctx, object); err != nil {
		return err
	}
	wanted.SetResourceVersion(object.GetResourceVersion())
	wanted.SetUID(object.GetUID())
	if status == nil {
		return nil
	}
	return h.Status().Update(ctx, wanted)
}

// score creates an AddOnPlacementScore "room" with a value "free" for each of the first n clusters.
func (h *hub) score(t testing.TB, n int) {
	t.Helper()
	each(t, n, func(ctx context.Context, i int) error {
		object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: nameOf(i), Name: "room"}}
		object.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "free", Value: int32(i*7%200 - 100)}}
		return h.put(ctx, object, &object.Status)
	})
}

// nameOf returns the name of the i-th generated cluster.
func nameOf(i int) string { return fleet.Cluster(i, time.Time{}).Name }

// place creates a Placement that celset-placement decides.
func (h *hub) place(t testing.TB, name string, spec clusterv1beta1.PlacementSpec) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"}},
		Spec:       spec,
	}
	require.NoError(t, h.Create(t.Context(), object))
	return object
}

// relabel sets a label of a cluster.
func (h *hub) relabel(ctx context.Context, name, key, value string) error {
	object := &clusterv1.ManagedCluster{}
	if err := h.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return err
	}
	return env.Change(ctx, h, object, func(c *clusterv1.ManagedCluster) { c.Labels[key] = value })
}

const program = "celset-placement"

// build builds the program if needed, and returns its path.
func build(t testing.TB) string {
	t.Helper()
	return env.Program(t, program)
}

// An instance is a process that runs the program.
type instance struct {
	command *exec.Cmd
	output  *bytes.Buffer
	// done is closed when the process has ended. output may be read only after that.
	done chan struct{}
	kill func()
}

// start runs the program until it is killed or the test ends.
func start(t testing.TB, binary, kubeconfig string, arguments ...string) *instance {
	t.Helper()
	i := &instance{output: &bytes.Buffer{}, done: make(chan struct{})}
	arguments = append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0"}, arguments...)
	i.command = exec.Command(binary, arguments...)
	i.command.Stdout, i.command.Stderr = i.output, i.output
	require.NoError(t, i.command.Start())
	go func() {
		defer close(i.done)
		_ = i.command.Wait()
	}()
	i.kill = sync.OnceFunc(func() {
		_ = i.command.Process.Kill()
		<-i.done
	})
	t.Cleanup(i.kill)
	return i
}

// running fails the test if the process has ended by itself.
func (i *instance) running(t testing.TB) {
	t.Helper()
	select {
	case <-i.done:
		t.Fatalf("%s ended by itself: %s\n%s", program, i.command.ProcessState, i.output)
	default:
	}
}

// A meter counts the decisions, evaluations and requests of a controller.
type meter struct {
	evaluations atomic.Int64
	// decisions is the number of decisions, including decisions that confirm the previous one.
	decisions atomic.Int64

	mutex sync.Mutex
	// writes counts the writing requests, by method and resource.
	writes map[string]int
}

// ObserveCompilation implements [cel.Observer].
func (*meter) ObserveCompilation(string, bool, error) {}

// ObserveEvaluation implements [cel.Observer].
func (m *meter) ObserveEvaluation(string, uint64, error) { m.evaluations.Add(1) }

// ObserveSchedule does nothing.
func (*meter) ObserveSchedule() func(*placement.Result, error) {
	return func(*placement.Result, error) {}
}

// ObservePlugin implements [placement.Observer]. It counts the decisions by counting calls of the first filter, which runs once
// for each.
func (m *meter) ObservePlugin(_, name string) func() {
	if name != placement.Predicate {
		return func() {}
	}
	return func() { m.decisions.Add(1) }
}

// ObserveTurn implements [controller.Observer].
func (m *meter) ObserveTurn(turn string, _ bool) {
	if turn == controller.TurnUnchanged {
		m.decisions.Add(1)
	}
}

// ObserveWriting does nothing.
func (*meter) ObserveWriting() func(error) { return func(error) {} }

// roundTripper counts the requests of a client.
type roundTripper struct {
	*meter
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		path := strings.Split(request.URL.Path, "/")
		resource := path[len(path)-1]
		for i, part := range path {
			if part == "namespaces" && i+2 < len(path) {
				resource = path[i+2]
			}
		}
		if path[len(path)-1] == "status" {
			resource += "/status"
		}
		r.mutex.Lock()
		r.writes[request.Method+" "+resource]++
		r.mutex.Unlock()
	}
	return r.next.RoundTrip(request)
}

// reset returns the numbers of writes and evaluations since the last reset.
func (m *meter) reset() (writes map[string]int, evaluations int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	writes, m.writes = m.writes, map[string]int{}
	return writes, int(m.evaluations.Swap(0))
}

// control runs the controller in this process, until stop is called or the test ends.
func (h *hub) control(t testing.TB) (m *meter, stop func()) {
	t.Helper()
	m = &meter{writes: map[string]int{}}
	environment, err := cluster.NewEnvironment(cel.Config{Observer: m, CacheBytes: 1 << 30})
	require.NoError(t, err)
	config := h.ConfigOf(t, controlplane.AdminUser)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{m, next} })
	options := controller.Options{Scheduler: placement.Config{Environment: environment, Observer: m}, Observer: m, SkipNameValidation: true}
	stop = h.Manage(t, config, manager.Options{Cache: controller.Cache()}, func(mgr manager.Manager) error { return controller.Add(mgr, options) })
	return m, stop
}
