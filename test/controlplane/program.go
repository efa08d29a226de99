// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"time"
)

// A Program describes the program that StartProgram starts.
type Program struct {
	// Name is the name of the process, unique among running processes.
	Name string
	// Binary is the path of the program, or the name of a program in the binary directory.
	Binary string
	// Args are all arguments of the program. Env holds variables "NAME=value" in addition to the environment of this process.
	Args, Env []string
	// Endpoint is the URL of the program's plain HTTP server, without a path. Process.Get uses it.
	Endpoint string
	// Ready returns nil when the program is ready. It is called until then. A nil function means that the program is ready as
	// soon as it runs.
	Ready func(context.Context, *Process) error
	// Grace is the time between SIGTERM and SIGKILL. Zero means SIGKILL at once.
	Grace time.Duration

	// Isolated gives the program its own mount namespace and its own PID namespace, where it has PID 1. When the program ends,
	// the kernel kills all processes in the namespaces and removes the mounts. Only then does Done report the end. Isolated
	// needs Linux and root.
	Isolated bool
	// Beside, if not nil, is an isolated program. The new program runs in its namespaces.
	Beside *Process
}

// StartProgram starts any program as part of the control plane, and returns when it is ready. The program runs until it is
// stopped, the context ends or the control plane stops.
func (cp *ControlPlane) StartProgram(ctx context.Context, program Program) (*Process, error) {
	if program.Isolated && runtime.GOOS != "linux" {
		return nil, errors.New("start " + program.Name + ": only Linux has namespaces")
	}
	binary := program.Binary
	if filepath.Base(binary) == binary {
		binary = cp.Binary(binary)
	}
	p, err := cp.supervisor.startOne(ctx, command{
		name: program.Name, binary: binary, args: program.Args, env: program.Env,
		endpoint: program.Endpoint, client: cp.plainClient, grace: program.Grace,
		isolated: program.Isolated, beside: program.Beside,
	}, func(p *Process) func(context.Context) error {
		return func(ctx context.Context) error {
			if program.Ready == nil {
				return nil
			}
			return program.Ready(ctx, p)
		}
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, p.Stop)
	return p, nil
}

// KubeletTLS holds paths of TLS files for a kubelet. With them, the kubelet and the API server authenticate to each other when
// the API server requests logs or other data.
type KubeletTLS struct {
	// ServingCert and ServingKey are for the kubelet's server on the loopback interface. The API server trusts the certificate.
	ServingCert, ServingKey string
	// ClientCA is the CA of the API server's client certificate. It has signed no other certificate.
	ClientCA string
}

// KubeletTLS returns the paths of the TLS files for kubelets.
func (cp *ControlPlane) KubeletTLS() KubeletTLS {
	return KubeletTLS{
		ServingCert: cp.pki.servingCert, ServingKey: cp.pki.servingKey,
		ClientCA: cp.pki.kubeletClientCert,
	}
}

// Probe succeeds when a plain HTTP GET of the URL returns 200.
func Probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
