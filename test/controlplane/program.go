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

// Program says which program StartProgram starts.
type Program struct {
	// Name of the process. Programs that run at the same time need different ones.
	Name string
	// Binary is the path of the program, or the name of one in the binary directory.
	Binary string
	// Args are all its arguments. Env is for its environment, beside that of this
	// process: "NAME=value".
	Args, Env []string
	// Endpoint is the URL of its plain HTTP server, without a path, for Process.Get.
	Endpoint string
	// Ready succeeds when the program is ready; it is asked repeatedly. Nil: the program
	// is ready when it runs.
	Ready func(context.Context, *Process) error
	// Grace is the time between the request to end and the end by force. Zero: by
	// force at once.
	Grace time.Duration

	// Isolated gives the program a mount namespace and a PID namespace of its own, in
	// which it has the number 1: when it ends, the kernel kills what else is in them
	// and takes the mounts apart, before the end of the program is seen. Linux only,
	// as root.
	Isolated bool
	// Beside is an isolated program whose namespaces this one is to be in.
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

// KubeletTLS are paths of files with which a kubelet and the API server know each
// other, for what the API server asks of kubelets: logs, for example.
type KubeletTLS struct {
	// ServingCert and ServingKey are what the API server trusts on the loopback
	// interface.
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

// Probe succeeds when a GET of the URL, plain HTTP, answers 200.
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
