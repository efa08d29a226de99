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
	// Name of the process, unique among running processes.
	Name string
	// Binary is the path of the program, or its name in the binary directory.
	Binary string
	// Args are all its arguments. Env is added to the environment of this process: "NAME=value".
	Args, Env []string
	// Endpoint is the URL of its plain HTTP server, without a path, for Process.Get.
	Endpoint string
	// Ready succeeds when the program is ready; it is called repeatedly. Nil: the program is ready when it runs.
	Ready func(context.Context, *Process) error
	// Grace is the time between SIGTERM and SIGKILL. Zero: SIGKILL at once.
	Grace time.Duration

	// Isolated gives the program its own mount namespace and PID namespace, with PID 1. When the program ends, the kernel kills all
	// other processes in them and removes the mounts before the end is visible. It needs Linux and root.
	Isolated bool
	// Beside is an isolated program whose namespaces this program joins.
	Beside *Process
}

// StartProgram starts any program beside the control plane and returns when it is
// ready. It runs until it is stopped, the context ends or the control plane stops.
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

// KubeletTLS holds the paths of the files that authenticate a kubelet and the API server to each other, for requests to kubelets
// such as logs.
type KubeletTLS struct {
	// ServingCert and ServingKey are trusted by the API server on the loopback interface.
	ServingCert, ServingKey string
	// ClientCA signed the certificate of the API server, and nothing else.
	ClientCA string
}

// KubeletTLS returns the files for kubelets.
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
