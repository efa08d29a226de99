// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
	"github.com/celset/celset/internal/clusterstate/watching"
	"github.com/celset/celset/test/internal/env"
)

// follow follows the cluster with the rights of a user until the test ends.
func follow(t *testing.T, hub *env.Hub, user string, options watching.Options) *watching.Watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	config := hub.RESTConfig()
	if user != "" {
		path, err := hub.KubeconfigFor(user)
		require.NoError(t, err)
		config, err = clientcmd.BuildConfigFromFlags("", path)
		require.NoError(t, err)
	}
	config.QPS = -1 // without a limit
	w, err := watching.Start(ctx, config, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		w.Wait()
	})
	limited, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	require.NoError(t, w.Synced(limited))
	return w
}

// read reads the cluster as the other commands do.
func read(ctx context.Context, hub *env.Hub, namespace string) (*clusterstate.Objects, error) {
	o, err := reading.Cluster(ctx, hub.Client(), namespace)
	if err == nil {
		err = reading.AddAttributes(ctx, o, hub.Client().Discovery().RESTClient())
	}
	if err == nil {
		err = reading.AddGroups(ctx, o, hub.Client(), namespace)
	}
	if err == nil {
		err = reading.AddRunning(ctx, o, hub.Client())
	}
	return o, err
}

// normal returns the objects in a form that can be compared: sorted, without resource versions, with limited quantities, and
// with the fields of pods that watches keep. Pods in the list of pods are removed from the list of running pods.
func normal(o *clusterstate.Objects) *clusterstate.State {
	o.LimitQuantities()
	pods := map[string]bool{}
	for i, pod := range o.Pods {
		o.Pods[i] = watching.Kept(pod.DeepCopy(), true)
		pods[pod.Namespace+"/"+pod.Name] = true
	}
	o.Running = slices.DeleteFunc(o.Running, func(pod *corev1.Pod) bool { return pods[pod.Namespace+"/"+pod.Name] })
	slices.SortFunc(o.Running, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	state := clusterstate.New(o)
	unversion(state.Claims)
	unversion(state.Templates)
	unversion(state.Objects.Classes)
	unversion(state.Objects.Slices)
	unversion(state.TaintRules)
	unversion(state.Attributes)
	unversion(state.Objects.Nodes)
	unversion(state.Pods)
	unversion(state.Groups)
	unversion(state.Running)
	return state
}

// unversion replaces objects by copies without resource versions.
func unversion[T interface {
	metav1.Object
	DeepCopy() T
}](objects []T) {
	for i := range objects {
		objects[i] = objects[i].DeepCopy()
		objects[i].SetResourceVersion("")
	}
	slices.SortFunc(objects, func(a, b T) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
}

// difference returns the difference between the objects of the watcher and listed objects.
func difference(ctx context.Context, hub *env.Hub, w *watching.Watcher, namespace string) (string, error) {
	want, err := read(ctx, hub, namespace)
	if err != nil {
		return "", err
	}
	read, watched := normal(want), normal(w.Objects())
	for _, parts := range [][2]any{
		{read.Claims, watched.Claims}, {read.Templates, watched.Templates}, {read.Objects.Classes, watched.Objects.Classes},
		{read.Objects.Slices, watched.Objects.Slices}, {read.TaintRules, watched.TaintRules}, {read.Attributes, watched.Attributes},
		{read.Objects.Nodes, watched.Objects.Nodes}, {read.Pods, watched.Pods}, {read.Groups, watched.Groups},
		{read.Running, watched.Running}, {read.HasCluster, watched.HasCluster}, {read.Unread, watched.Unread},
	} {
		if diff := cmp.Diff(parts[0], parts[1], cmpopts.EquateEmpty()); diff != "" {
			println(diff)
			return diff, nil
		}
	}
	return "", nil
}

// TestWatchesAndListsAgree changes random objects, and compares watched objects with listed objects.
func TestWatchesAndListsAgree(t *testing.T) {
	hub := cluster(t)
	a, b := namespace(t, hub, "watch-a"), namespace(t, hub, "watch-b")
	all := follow(t, hub, "", watching.Options{})
	one := follow(t, hub, "", watching.Options{Namespace: a, Only: true})
	c := &changes{t: t, hub: hub, random: rand.New(rand.NewPCG(5, 7)), namespaces: []string{a, b}}
	c.attributes = func() dynamic.ResourceInterface {
		client, err := dynamic.NewForConfig(hub.RESTConfig())
		require.NoError(t, err)
		return client.Resource(v1alpha1.SchemeGroupVersion.WithResource("deviceattributes"))
	}()
	for range 12 {
		for range 25 {
			c.change()
		}
		revision, changed := all.Revision()
		env.Eventually(t, "all namespaces are the same", func(ctx context.Context) (string, error) { return difference(ctx, hub, all, "") })
		env.Eventually(t, "one namespace is the same", func(ctx context.Context) (string, error) { return difference(ctx, hub, one, a) })
		_ = revision
		env.Until(t, "there is another revision", func(context.Context) (bool, error) {
			select {
			case <-changed:
				return true, nil
			default:
				later, _ := all.Revision()
				return later != revision, nil
			}
		})
	}
	c.removeAll()
	env.Eventually(t, "nothing is left", func(ctx context.Context) (string, error) { return difference(ctx, hub, all, "") })
}

// changes makes random changes.
type changes struct {
	t          *testing.T
	hub        *env.Hub
	random     *rand.Rand
	namespaces []string
	attributes dynamic.ResourceInterface
	made       int
}

// name returns one of a few names, so that objects are often changed or deleted.
func (c *changes) name() string { return fmt.Sprintf("x%d", c.random.IntN(4)) }

// change creates, changes or deletes an object.
func (c *changes) change() {
	c.t.Helper()
	ctx, client, name := c.t.Context(), c.hub.Client(), c.name()
	in := c.namespaces[c.random.IntN(len(c.namespaces))]
	labels := map[string]string{"change": fmt.Sprint(c.made)}
	c.made++
	deletes := c.random.IntN(4) == 0
	meta := metav1.ObjectMeta{Namespace: in, Name: name, Labels: labels}
	switch c.random.IntN(9) {
	case 0:
		apply(c, client.ResourceV1().ResourceClaims(in), &resourceapi.ResourceClaim{ObjectMeta: meta, Spec: claimSpec(1)}, deletes)
	case 1:
		apply(c, client.ResourceV1().ResourceClaimTemplates(in), &resourceapi.ResourceClaimTemplate{ObjectMeta: meta,
			Spec: resourceapi.ResourceClaimTemplateSpec{Spec: claimSpec(2)}}, deletes)
	case 2:
		class := classOf("watch-" + name)
		class.Labels = labels
		apply(c, client.ResourceV1().DeviceClasses(), class, deletes)
	case 3:
		slice := sliceOf("watch-"+name, 1+c.random.IntN(8))
		slice.Labels = labels
		apply(c, client.ResourceV1().ResourceSlices(), slice, deletes)
	case 4:
		node := nodeOf("watch-" + name)
		node.Labels["change"] = labels["change"]
		apply(c, client.CoreV1().Nodes(), node, deletes)
	case 5:
		pod := env.Pod(name, "default-scheduler")
		pod.ObjectMeta = meta
		if c.random.IntN(2) == 0 {
			pod.Spec.NodeName = "watch-" + name
		}
		if c.random.IntN(2) == 0 {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &name}}
		}
		apply(c, client.CoreV1().Pods(in), pod, deletes)
	case 6:
		if hasGroups {
			group := &schedulingapi.PodGroup{ObjectMeta: meta}
			group.Spec.SchedulingPolicy.Gang = &schedulingapi.GangSchedulingPolicy{MinCount: 2}
			apply(c, client.SchedulingV1beta1().PodGroups(in), group, deletes)
		}
	case 7:
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "DeviceAttributes",
			"metadata": map[string]any{"name": "watch-" + name, "labels": map[string]any{"change": labels["change"]}},
			"spec":     map[string]any{"driver": driver, "attributes": []any{map[string]any{"name": "position", "expression": "device.attributes['" + driver + "'].index"}}},
		}}
		c.applyAttributes(ctx, object, deletes)
	case 8:
		c.update(ctx, client.CoreV1().Pods(in), name)
	}
}

// update writes the status of a pod, if it exists.
func (c *changes) update(ctx context.Context, pods interface {
	Get(context.Context, string, metav1.GetOptions) (*corev1.Pod, error)
	UpdateStatus(context.Context, *corev1.Pod, metav1.UpdateOptions) (*corev1.Pod, error)
}, name string) {
	c.t.Helper()
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	require.NoError(c.t, err)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: fmt.Sprint(c.made)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, Image: "image", RestartCount: int32(c.made)}}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

// typed is a typed client.
type typed[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// apply deletes or creates the object, or changes its labels.
func apply[T metav1.Object](c *changes, client typed[T], object T, deletes bool) {
	c.t.Helper()
	ctx := c.t.Context()
	existing, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && deletes:
		return
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
	case err == nil && deletes:
		var now int64
		err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
	case err == nil && existing.GetDeletionTimestamp() == nil:
		existing.SetLabels(object.GetLabels())
		_, err = client.Update(ctx, existing, metav1.UpdateOptions{})
	}
	require.NoError(c.t, err)
}

func (c *changes) applyAttributes(ctx context.Context, object *unstructured.Unstructured, deletes bool) {
	c.t.Helper()
	existing, err := c.attributes.Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && deletes:
		return
	case apierrors.IsNotFound(err):
		_, err = c.attributes.Create(ctx, object, metav1.CreateOptions{})
	case err == nil && deletes:
		err = c.attributes.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	case err == nil:
		existing.SetLabels(object.GetLabels())
		_, err = c.attributes.Update(ctx, existing, metav1.UpdateOptions{})
	}
	require.NoError(c.t, err)
}

// removeAll deletes the objects without a namespace, and the pods.
func (c *changes) removeAll() {
	ctx, client, all, now := c.t.Context(), c.hub.Client(), metav1.ListOptions{LabelSelector: "change"}, int64(0)
	requireNoError(c.t,
		client.ResourceV1().DeviceClasses().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		c.attributes.DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	)
	for _, namespace := range c.namespaces {
		requireNoError(c.t, client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, all))
	}
}

// grant gives a user the right to list and watch resources, in a namespace or in the cluster.
func grant(t *testing.T, hub *env.Hub, user, namespace, group string, verbs []string, resources ...string) {
	t.Helper()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: verbs}}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	rbac, meta := hub.Client().RbacV1(), metav1.ObjectMeta{GenerateName: user + "-"}
	if namespace != "" {
		role := env.Create(t, rbac.Roles(namespace), &rbacv1.Role{ObjectMeta: meta, Rules: rules})
		env.Create(t, rbac.RoleBindings(namespace), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}})
		return
	}
	role := env.Create(t, rbac.ClusterRoles(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	env.Create(t, rbac.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}})
}

var readVerbs = []string{"list", "watch"}

// TestRights checks that missing rights become warnings, and that rights are noticed when they are granted later.
func TestRights(t *testing.T) {
	hub := cluster(t)
	mine, other := namespace(t, hub, "rights-mine"), namespace(t, hub, "rights-other")
	for _, namespace := range []string{mine, other} {
		env.Create(t, hub.Client().ResourceV1().ResourceClaims(namespace), &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: claimSpec(1)})
	}
	env.Create(t, hub.Client().ResourceV1().DeviceClasses(), classOf("rights"))
	grant(t, hub, tenant, mine, resourceapi.GroupName, readVerbs, "resourceclaims", "resourceclaimtemplates")
	grant(t, hub, tenant, mine, "", readVerbs, "pods")
	w := follow(t, hub, tenant, watching.Options{Namespace: mine, Retry: 100 * time.Millisecond})
	warnings := func(want ...string) {
		t.Helper()
		env.Eventually(t, "the warnings are there", func(context.Context) (string, error) {
			got := w.Objects().Warnings
			for _, part := range want {
				if !slices.ContainsFunc(got, func(warning string) bool { return strings.Contains(warning, part) }) {
					return fmt.Sprintf("no warning %q in %q", part, got), nil
				}
			}
			if len(got) != len(want) {
				return fmt.Sprintf("%d warnings instead of %d: %q", len(got), len(want), got), nil
			}
			return "", nil
		})
	}
	base := []string{
		"the claims of other namespaces can't be read, so their devices are shown as free: ",
		"only ResourceClaimTemplates of namespace " + mine + " are shown: ",
		"only Pods of namespace " + mine + " are shown: ",
		"list DeviceTaintRules: devicetaintrules", "list DeviceAttributes: deviceattributes", "list Nodes: nodes is forbidden",
	}
	if hasGroups {
		base = append(base, "list PodGroups: podgroups")
	}
	warnings(append(slices.Clone(base), "list ResourceSlices: resourceslices.resource.k8s.io is forbidden", "list DeviceClasses: deviceclasses")...)
	objects := w.Objects()
	require.Len(t, objects.Claims, 1)
	require.Equal(t, mine, objects.Claims[0].Namespace)
	require.Empty(t, objects.Classes)
	require.NotEmpty(t, objects.RunningUnknown)

	grant(t, hub, tenant, "", resourceapi.GroupName, readVerbs, "deviceclasses")
	grant(t, hub, tenant, "", resourceapi.GroupName, []string{"list"}, "resourceslices")
	warnings(append(slices.Clone(base), "ResourceSlices are read every 100ms, because they can't be watched: ")...)
	env.Becomes(t, 1, func() int { return len(w.Objects().Classes) })
	env.Create(t, hub.Client().ResourceV1().ResourceSlices(), sliceOf("rights", 2))
	env.Becomes(t, 1, func() int { return len(w.Objects().Slices) })
}

// TestRightsThatEnd checks that the objects of a kind disappear when the user may not read them any more.
func TestRightsThatEnd(t *testing.T) {
	hub := cluster(t)
	mine := namespace(t, hub, "ending")
	env.Create(t, hub.Client().ResourceV1().ResourceClaims(mine), &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: claimSpec(1)})
	grant(t, hub, stranger, mine, resourceapi.GroupName, []string{"list"}, "resourceclaims")
	w := follow(t, hub, stranger, watching.Options{Namespace: mine, Retry: 100 * time.Millisecond})
	env.Becomes(t, 1, func() int { return len(w.Objects().Claims) })
	requireNoError(t, hub.Client().RbacV1().RoleBindings(mine).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	env.Becomes(t, 0, func() int { return len(w.Objects().Claims) })
}

// TestRevisions checks that a change without an effect on answers causes no revision.
func TestRevisions(t *testing.T) {
	hub := cluster(t)
	nodes := hub.Client().CoreV1().Nodes()
	node := env.Create(t, nodes, nodeOf("revisions"))
	w := follow(t, hub, "", watching.Options{})
	env.Until(t, "the node is there", func(context.Context) (bool, error) {
		return slices.ContainsFunc(w.Objects().Nodes, func(n *corev1.Node) bool { return n.Name == node.Name }), nil
	})
	quiet := func() string {
		t.Helper()
		for {
			before, changed := w.Revision()
			select {
			case <-changed:
			case <-time.After(2 * time.Second):
				return before
			}
		}
	}
	before := quiet()
	for i := range 5 {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Unix(int64(i), 0))}}
		var err error
		node, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	node.Spec.Unschedulable = true
	_, err := nodes.Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	env.Until(t, "the node is cordoned", func(context.Context) (bool, error) {
		return slices.ContainsFunc(w.Objects().Nodes, func(n *corev1.Node) bool { return n.Name == node.Name && n.Spec.Unschedulable }), nil
	})
	require.Equal(t, number(t, before)+1, number(t, quiet()), "heartbeats cause no revision")
}

// number returns the number of a revision.
func number(t *testing.T, revision string) int {
	t.Helper()
	_, text, _ := strings.Cut(revision, "-")
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
