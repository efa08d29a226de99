// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/realnode"
)

// killedEnv has this program be one that is killed: its value is the directory in which
// it runs a control plane and a node.
const killedEnv = "CELSET_E2E_KILLED"

const upLine = "the pod runs"

// runUntilKilled never returns unless something is wrong.
func runUntilKilled(dir string) {
	if err := runPodIn(context.Background(), dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(upLine)
	select {}
}

// small is a control plane without what the test of this file has no use for.
func small(ctx context.Context, dir string) (*controlplane.ControlPlane, error) {
	return controlplane.Start(ctx, controlplane.Options{
		DataDir: dir, Prebuilt: true, SkipKwok: true, SkipControllerManager: true,
	})
}

func runPodIn(ctx context.Context, dir string) error {
	cp, err := small(ctx, dir)
	if err != nil {
		return err
	}
	node, err := realnode.Start(ctx, cp, realnode.Options{})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       corev1.PodSpec{NodeName: node.Name(), Containers: []corev1.Container{{Name: "main"}}},
	}
	realnode.Adapt(&pod.Spec)
	pods := cp.Client().CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollPeriod) {
		pod, err := pods.Get(ctx, "pod", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fmt.Errorf("the pod does not run; logs are in %s", cp.LogDir())
}

// TestKilledRun kills a program that runs a node, with everything that it could have
// tidied up.
func TestKilledRun(t *testing.T) {
	// Not t.TempDir(): paths of sockets are limited.
	dir, err := os.MkdirTemp("", "celset-killed-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	nodeDir := filepath.Join(dir, realnode.DefaultName)
	t.Cleanup(func() { require.NoError(t, nothingLeft(dir, nodeDir)) })

	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), killedEnv+"="+dir)
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, upLine+"\n", line)
	left, err := realnode.Leftovers(nodeDir)
	require.NoError(t, err)
	require.Contains(t, strings.Join(left, "\n"), "process ", "what will be looked for can be seen now")
	require.Contains(t, strings.Join(left, "\n"), "mount "+nodeDir)

	require.NoError(t, program.Process.Kill())
	require.Error(t, program.Wait())
	require.Eventually(t, func() bool {
		left, err = realnode.Leftovers(nodeDir)
		return err == nil && !strings.Contains(strings.Join(left, "\n"), "process ") && !strings.Contains(strings.Join(left, "\n"), "mount ")
	}, patience, pollPeriod, "the kernel ends the processes and takes the mounts apart")
	require.NotEmpty(t, left, "cgroups")

	cp, err := small(t.Context(), dir)
	require.NoError(t, err)
	defer cp.Stop()
	node, err := realnode.Start(t.Context(), cp, realnode.Options{})
	require.NoError(t, err, "in the same directory")
	require.NoError(t, node.Stop())
	require.NoError(t, nothingLeft(node.Dir()))
}
