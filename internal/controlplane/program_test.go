// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// beside is a control plane without components, for programs beside them.
func beside(t *testing.T) *ControlPlane {
	t.Helper()
	cp, err := prepare(t.Context(), Options{DataDir: t.TempDir(), Prebuilt: true})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	return cp
}

func TestStartProgram(t *testing.T) {
	cp := beside(t)
	mark := filepath.Join(t.TempDir(), "mark")
	p, err := cp.StartProgram(t.Context(), Program{
		Name: "program", Binary: "/bin/sh", Args: []string{"-c", `echo "$WORD" > "$0"; sleep 60`, mark}, Env: []string{"WORD=ready"},
		Ready: func(context.Context, *Process) error {
			if content, err := os.ReadFile(mark); err != nil || string(content) != "ready\n" {
				return errors.New("not yet")
			}
			return nil
		},
	})
	require.NoError(t, err)
	require.FileExists(t, mark)
	require.Equal(t, []*Process{p}, cp.Processes())
	cp.Stop()
	require.NoError(t, p.Err())
	<-p.Done()
}

func TestStartProgramFails(t *testing.T) {
	cp := beside(t)
	_, err := cp.StartProgram(t.Context(), Program{Name: "absent", Binary: "/no/such/program"})
	require.ErrorContains(t, err, "start absent: fork/exec /no/such/program: no such file")
	_, err = cp.StartProgram(t.Context(), Program{Name: "ends", Binary: "/bin/sh", Args: []string{"-c", "echo why; exit 3"},
		Ready: func(context.Context, *Process) error { return errors.New("not ready") }})
	require.ErrorContains(t, err, "not ready yet: ends ended by itself: exit status 3")
	require.ErrorContains(t, err, "why")
}

// TestKubeletTLS has the certificate of the API server as a client pass for nobody
// but itself.
func TestKubeletTLS(t *testing.T) {
	cp := beside(t)
	files := cp.KubeletTLS()
	pair, err := tls.LoadX509KeyPair(cp.pki.kubeletClientCert, cp.pki.kubeletClientKey)
	require.NoError(t, err)
	_, err = tls.LoadX509KeyPair(files.ServingCert, files.ServingKey)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	content, err := os.ReadFile(files.ClientCA)
	require.NoError(t, err)
	require.True(t, trusted.AppendCertsFromPEM(content))

	verify := func(pair tls.Certificate) error {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	require.NoError(t, verify(pair))
	other := beside(t)
	stranger, err := tls.LoadX509KeyPair(other.pki.kubeletClientCert, other.pki.kubeletClientKey)
	require.NoError(t, err)
	require.Error(t, verify(stranger))
}
