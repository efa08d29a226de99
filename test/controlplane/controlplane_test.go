// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// start starts a control plane and stops it at the end of the test.
func start(t *testing.T, options Options) *ControlPlane {
	t.Helper()
	if options.Progress == nil {
		options.Progress = t.Output()
	}
	cp, err := Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	return cp
}

func TestWholeControlPlane(t *testing.T) {
	t.Parallel()
	cp := start(t, Options{DataDir: t.TempDir()})
	client := cp.Client()
	processes := cp.Processes()
	require.Len(t, processes, 4)

	t.Run("namespaces come and go", func(t *testing.T) {
		namespaces := client.CoreV1().Namespaces()
		created, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, namespaces.Delete(t.Context(), created.Name, metav1.DeleteOptions{}))
		require.Eventually(t, func() bool {
			_, err := namespaces.Get(t.Context(), created.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, patience, 100*time.Millisecond, "the namespace controller finalizes namespaces")
	})

	t.Run("kwok nodes get ready and run pods", func(t *testing.T) {
		names, err := CreateNodes(t.Context(), client, 2, NodeOptions{
			Prefix:   "worker",
			Labels:   map[string]string{"zone": "a"},
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		})
		require.NoError(t, err)
		require.Equal(t, []string{"worker-0", "worker-1"}, names)

		node, err := client.CoreV1().Nodes().Get(t.Context(), "worker-1", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "a", node.Labels["zone"])
		require.Empty(t, node.Spec.Taints)
		require.Equal(t, int64(3), node.Status.Allocatable.Cpu().Value())
		require.Equal(t, int64(110), node.Status.Allocatable.Pods().Value())

		pods := client.CoreV1().Pods("default")
		for name, phase := range map[string]corev1.PodPhase{"server": corev1.PodRunning, "batch": corev1.PodSucceeded} {
			pod := boundPod(name, "worker-1")
			if phase == corev1.PodSucceeded {
				pod.Annotations = map[string]string{RunForAnnotation: "1s"}
			}
			_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
				return err == nil && pod.Status.Phase == phase
			}, patience, 100*time.Millisecond, "pod %s does not reach phase %s", name, phase)
		}
		require.NoError(t, pods.Delete(t.Context(), "server", metav1.DeleteOptions{}))
		require.Eventually(t, func() bool {
			_, err := pods.Get(t.Context(), "server", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, patience, 100*time.Millisecond, "kwok lets pods go")
	})

	t.Run("claims are made from templates", func(t *testing.T) {
		_, err := client.ResourceV1().ResourceClaimTemplates("default").Create(t.Context(), &resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "template"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		pod := boundPod("claiming", "")
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: ptr.To("template")}}
		_, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			claims, err := client.ResourceV1().ResourceClaims("default").List(t.Context(), metav1.ListOptions{})
			return err == nil && len(claims.Items) == 1
		}, patience, 100*time.Millisecond, "the resource claim controller makes claims")
	})

	t.Run("manifests are applied", func(t *testing.T) { testApply(t, cp) })

	t.Run("servers carry the version of the libraries", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		require.NoError(t, err)
		require.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)
	})

	t.Run("metrics are readable", func(t *testing.T) {
		for _, p := range cp.Processes() {
			body, err := p.Get(t.Context(), "/metrics")
			require.NoError(t, err)
			require.Contains(t, string(body), "go_goroutines", p.Name())
		}
	})

	cp.Stop()
	require.Empty(t, cp.Processes())
	for _, p := range processes {
		require.NoError(t, p.Err(), "stopped is not failed")
		require.ErrorIs(t, syscall.Kill(-p.PID(), 0), syscall.ESRCH, "process group of %s", p.Name())
	}
	require.DirExists(t, cp.LogDir(), "a directory that was given is kept")
	_, err := cp.StartScheduler(t.Context(), SchedulerOptions{Binary: "/bin/true"})
	require.ErrorContains(t, err, "the control plane is stopped")
}

// boundPod returns a pod on a node with each kind of container whose status kwok sets.
func boundPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName:       node,
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}},
			InitContainers: []corev1.Container{
				{Name: "init", Image: "none"},
				{Name: "sidecar", Image: "none", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
			},
			Containers: []corev1.Container{{Name: "c", Image: "none"}},
		},
	}
}

func TestUsersAndStoredData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := Options{
		DataDir: dir, SkipControllerManager: true, SkipKwok: true,
		Users: []User{{Name: "system:kube-scheduler"}, {Name: "team/alice", Groups: []string{"readers", "testers"}}},
	}
	cp := start(t, options)

	t.Run("a second control plane in the directory", func(t *testing.T) {
		_, err := Start(t.Context(), options)
		require.ErrorContains(t, err, dir+": another control plane runs in it")
	})

	t.Run("static nodes are ready without kwok", func(t *testing.T) {
		_, err := CreateNodes(t.Context(), cp.Client(), 1, NodeOptions{Static: true})
		require.NoError(t, err)
	})

	t.Run("nodes that exist are an error", func(t *testing.T) {
		_, err := CreateNodes(t.Context(), cp.Client(), 1, NodeOptions{Static: true})
		require.True(t, apierrors.IsAlreadyExists(err), "got %v", err)
		require.ErrorContains(t, err, "create node node-0")
	})

	t.Run("users may do what RBAC allows them", func(t *testing.T) {
		alice := clientOf(t, cp, "team/alice")
		_, err := alice.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "got %v", err)

		_, err = cp.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "testers"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-scheduler"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "testers"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := alice.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err == nil
		}, patience, 50*time.Millisecond)
	})

	t.Run("bootstrapped roles hold for users of those names", func(t *testing.T) {
		_, err := clientOf(t, cp, "system:kube-scheduler").CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	})

	t.Run("a user nobody named", func(t *testing.T) {
		_, err := cp.KubeconfigFor("bob")
		require.ErrorContains(t, err, `user "bob" is unknown`)
		_, err = cp.RESTConfigFor("bob")
		require.ErrorContains(t, err, `user "bob" is unknown`)
	})

	cp.Stop()
	again := start(t, options)
	_, err := again.Client().CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	require.NoError(t, err, "objects outlive the control plane in a directory of the caller")
}

// clientOf returns a client that uses the user's kubeconfig, as a component does.
func clientOf(t *testing.T, cp *ControlPlane, user string) kubernetes.Interface {
	t.Helper()
	path, err := cp.KubeconfigFor(user)
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func TestComponentThatDiesAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{
		DataDir: dir, Progress: t.Output(), SkipKwok: true,
		Controllers: []string{"no-such-controller"},
	})
	require.ErrorContains(t, err, "kube-controller-manager ended by itself: exit status 1")
	require.ErrorContains(t, err, "is not in the list of known controllers")
	require.ErrorContains(t, err, filepath.Join(dir, "logs", "kube-controller-manager.log"))
	requireNoChildren(t, dir)
}

// After a failed start, the temporary directory must stay if the error refers to its logs. If the caller canceled the start, it
// must be gone.
func TestDirectoryOfAFailedStart(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("nobody waits any more"))
	for _, test := range []struct {
		ctx  context.Context
		want string
		left int
	}{
		{ended, "start etcd: nobody waits any more", 0},
		{t.Context(), "start etcd: fork/exec", 1},
	} {
		_, err := Start(test.ctx, Options{Prebuilt: true, BinDir: t.TempDir()})
		require.ErrorContains(t, err, test.want)
		left, err := os.ReadDir(temporary)
		require.NoError(t, err)
		require.Len(t, left, test.left)
	}
}

func TestContextEndsControlPlane(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cp, err := Start(ctx, Options{DataDir: dir, Progress: t.Output(), SkipControllerManager: true, SkipKwok: true})
	require.NoError(t, err)
	processes := cp.Processes()
	cancel()
	require.NoError(t, cp.Wait(ctx))
	for _, p := range processes {
		select {
		case <-p.Done():
		case <-time.After(patience):
			t.Fatalf("%s survives the context", p.Name())
		}
	}
	cp.Stop() // waits until the stop by the ended context is complete
	requireNoChildren(t, dir)
}

func TestWaitReportsFailure(t *testing.T) {
	t.Parallel()
	cp := start(t, Options{SkipControllerManager: true, SkipKwok: true})
	require.DirExists(t, cp.DataDir())
	for _, p := range cp.Processes() {
		if p.Name() == Etcd {
			require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
		}
	}
	err := cp.Wait(t.Context())
	require.ErrorContains(t, err, "etcd ended by itself: signal: killed")
	cp.Stop()
	require.NoDirExists(t, cp.DataDir(), "a temporary directory is removed")
}

// requireNoChildren requires that no process of the control plane is left. All of them have the directory in their command
// line.
func requireNoChildren(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		cmdline, err := os.ReadFile(file)
		if err == nil { // an error means that the process has ended
			require.NotContains(t, string(cmdline), dir, "still running")
		}
	}
}

const applyManifest = `# A comment alone is no object.
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: apply}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: apply}
data: {key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: apply, namespace: kube-system}
`

func testApply(t *testing.T, cp *ControlPlane) {
	configMaps := cp.Client().CoreV1().ConfigMaps

	applied, err := Apply(t.Context(), cp.RESTConfig(), []byte(applyManifest), ApplyOptions{DryRun: true})
	require.NoError(t, err)
	require.Len(t, applied, 3)
	_, err = configMaps("default").Get(t.Context(), "apply", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a dry run stores nothing: %v", err)

	for range 2 { // a second Apply of the same manifest changes nothing
		_, err = Apply(t.Context(), cp.RESTConfig(), []byte(applyManifest), ApplyOptions{})
		require.NoError(t, err)
	}
	_, err = cp.Client().ResourceV1().DeviceClasses().Get(t.Context(), "apply", metav1.GetOptions{})
	require.NoError(t, err)
	stored, err := configMaps("default").Get(t.Context(), "apply", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"key": "value"}, stored.Data)
	_, err = configMaps("kube-system").Get(t.Context(), "apply", metav1.GetOptions{})
	require.NoError(t, err)

	for manifest, want := range map[string]string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\nfield: 1": "ConfigMap wrong",
		"apiVersion: v2\nkind: Unknown\nmetadata: {name: wrong}":             "Unknown wrong",
		"{": "document 1 of the manifest",
	} {
		_, err := Apply(t.Context(), cp.RESTConfig(), []byte(manifest), ApplyOptions{})
		require.ErrorContains(t, err, want)
	}
}

func TestOptionsValidate(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		err     string
	}{
		"zero": {},
		"users": {options: Options{Users: []User{
			{Name: "a", Groups: []string{"g", "h"}}, {Name: "b"},
		}}},
		"nameless user": {
			options: Options{Users: []User{{Name: "a"}, {}}},
			err:     "Users[1]: Name is empty",
		},
		"same user twice": {
			options: Options{Users: []User{{Name: "a"}, {Name: "a"}}},
			err:     `Users[1]: Name "a" is taken`,
		},
		"the administrator's name": {
			options: Options{Users: []User{{Name: AdminUser}}},
			err:     `Users[0]: Name "celset-admin" is taken`,
		},
		"group with a comma": {
			options: Options{Users: []User{{Name: "a", Groups: []string{"g,system:masters"}}}},
			err:     `Users[0] (a): group "g,system:masters" is not usable`,
		},
		"service accounts that nobody creates": {
			options: Options{ServiceAccountAdmission: true, SkipControllerManager: true},
			err:     "ServiceAccountAdmission needs the controller manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.options.validate()
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
			_, err = Start(t.Context(), test.options)
			require.ErrorContains(t, err, test.err, "before anything is started")
		})
	}
}
