// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// programDir is where ko puts the program of an image.
const programDir = "/ko-app"

// libraries are the folders that a program of this machine may need, where an image has a static one.
var libraries = []string{"/lib", "/lib64", "/usr/lib"}

// environment is that of the base image.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// program is the name of the binary in an image, the last element of its name without the tag.
func program(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}

// writeBundle writes what runc runs: a container's program, in a root file system that has nothing
// else. Each volume is at the given path.
func (p *pod) writeBundle(dir string, volumes map[string]string) error {
	container, err := p.container()
	if err != nil {
		return err
	}
	user, err := p.user(container)
	if err != nil {
		return err
	}
	env, err := p.environment(container)
	if err != nil {
		return err
	}
	security := container.SecurityContext
	if security == nil || security.Capabilities == nil || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(security.Capabilities.Add) > 0 {
		return errors.New("only containers are known that drop all capabilities")
	}
	path := filepath.Join(programDir, program(container.Image))
	config := &specs.Spec{
		Version:  specs.Version,
		Hostname: p.object.Name,
		Root:     &specs.Root{Path: "rootfs", Readonly: ptr.Deref(security.ReadOnlyRootFilesystem, false)},
		Process: &specs.Process{
			Args: append([]string{path}, container.Args...), Env: env, User: user, Cwd: "/",
			Capabilities:    &specs.LinuxCapabilities{},
			NoNewPrivileges: !ptr.Deref(security.AllowPrivilegeEscalation, true),
		},
		Mounts: append(systemMounts(), bind(p.runner.cp.Binary(program(container.Image)), path, true)),
		Linux: &specs.Linux{
			// The network is that of the pod, in which runc is started.
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.UTSNamespace}, {Type: specs.IPCNamespace}},
			CgroupsPath: "/" + p.id(),
			Resources:   &specs.LinuxResources{},
		},
	}
	if limit, found := container.Resources.Limits[corev1.ResourceMemory]; found {
		config.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr.To(limit.Value())}
	}
	for _, mount := range container.VolumeMounts {
		source, found := volumes[mount.Name]
		if !found || mount.SubPath != "" || mount.SubPathExpr != "" {
			return fmt.Errorf("volume mount %s: only whole volumes are known", mount.Name)
		}
		config.Mounts = append(config.Mounts, bind(source, mount.MountPath, mount.ReadOnly))
	}
	content, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Join(dir, "rootfs"), 0o755), os.WriteFile(filepath.Join(dir, "config.json"), content, 0o600))
}

// systemMounts are those of every container.
func systemMounts() []specs.Mount {
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755", "size=65536k"}},
	}
	for _, library := range libraries {
		if _, err := os.Stat(library); err == nil {
			mounts = append(mounts, bind(library, library, true))
		}
	}
	return mounts
}

func bind(source, destination string, readOnly bool) specs.Mount {
	options := []string{"rbind"}
	if readOnly {
		options = append(options, "ro")
	}
	return specs.Mount{Destination: destination, Type: "bind", Source: source, Options: options}
}

// container is the only one of the pod.
func (p *pod) container() (*corev1.Container, error) {
	spec := p.spec()
	switch {
	case len(spec.Containers) != 1 || len(spec.InitContainers) > 0:
		return nil, errors.New("only pods with a single container are known")
	case spec.HostNetwork || spec.HostPID || spec.HostIPC:
		return nil, errors.New("pods in namespaces of their node are not known")
	}
	container := &spec.Containers[0]
	if len(container.Command) > 0 || len(container.EnvFrom) > 0 || container.WorkingDir != "" || container.Lifecycle != nil || strings.Contains(strings.Join(container.Args, ""), "$(") {
		return nil, errors.New("command, envFrom, workingDir, lifecycle and variables in args are not known")
	}
	return container, nil
}

func (p *pod) spec() *corev1.PodSpec { return &p.object.Spec }

// security is what the pod says for its containers; empty if it says nothing.
func (p *pod) security() *corev1.PodSecurityContext {
	if p.spec().SecurityContext == nil {
		return &corev1.PodSecurityContext{}
	}
	return p.spec().SecurityContext
}

// user is whom the program runs as: without a word of the pod, that of the image, which is
// nonroot.
func (p *pod) user(container *corev1.Container) (specs.User, error) {
	const nonroot = 65532
	pod, own := p.security(), container.SecurityContext
	if own != nil && (own.RunAsUser != nil || own.RunAsGroup != nil || own.RunAsNonRoot != nil) {
		return specs.User{}, errors.New("a user of the container is not known, only one of the pod")
	}
	user := specs.User{UID: nonroot, GID: nonroot}
	if pod.RunAsUser != nil {
		user = specs.User{UID: uint32(*pod.RunAsUser), GID: uint32(ptr.Deref(pod.RunAsGroup, 0))}
	}
	if ptr.Deref(pod.RunAsNonRoot, false) && user.UID == 0 {
		return specs.User{}, errors.New("runAsNonRoot, and the user is root")
	}
	if pod.FSGroup != nil {
		user.AdditionalGids = []uint32{uint32(*pod.FSGroup)}
	}
	return user, nil
}

func (p *pod) environment(container *corev1.Container) ([]string, error) {
	host, port, err := net.SplitHostPort(serviceAddress)
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(environment), "HOSTNAME="+p.object.Name, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			if value, err = p.field(variable.ValueFrom.FieldRef); err != nil {
				return nil, fmt.Errorf("environment %s: %w", variable.Name, err)
			}
		}
		env = append(env, variable.Name+"="+value)
	}
	return env, nil
}
