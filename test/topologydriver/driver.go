// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/topologydriver/cdi"
	"github.com/celset/celset/test/topologydriver/checkpoint"
)

// Options configure the drivers of a node. All fields but PodUID are required.
type Options struct {
	// Topology is the topology that [Drivers.Run] publishes.
	Topology topology.Topology
	// NodeName is the name of the Node object.
	NodeName string
	// PodUID is the UID of the driver's pod. If it is set, two pods may serve the node at the same time, as in a rolling
	// update. If it is empty, only one process may run.
	PodUID types.UID
	Client kubernetes.Interface
	// KubeletDir is the root directory of the kubelet. The driver's sockets and checkpoints are in its subdirectories plugins
	// and plugins_registry. The path must be short, because Linux limits the length of socket paths.
	KubeletDir string
	// CDIDir is the container runtime's directory of CDI specs.
	CDIDir  string
	Metrics *Metrics
}

// constraintDriver is the driver name in the configuration of CEL device constraints.
const constraintDriver = "celset.dev"

// A Driver serves the devices of one driver name on one node.
type Driver struct {
	name, node  string
	sockets     sockets
	devices     atomic.Pointer[map[string]topology.Device]
	checkpoint  *checkpoint.File
	specs       *cdi.Directory
	metrics     *Metrics
	registered  atomic.Bool
	helper      *kubeletplugin.Helper
	fail        func(error)
	healthEvery healthInterval
}

var _ kubeletplugin.DRAPlugin = (*Driver)(nil)

// Drivers are all drivers of a topology. Most topologies have one driver. GPUs with NICs have two. Real machines have any
// number.
type Drivers struct {
	all      []*Driver
	topology topology.Topology
	failed   chan error
}

// Start starts all drivers of a topology. When it returns, they are ready for the kubelet. Run publishes the devices.
func Start(ctx context.Context, o Options) (*Drivers, error) {
	drivers := &Drivers{topology: o.Topology, failed: make(chan error, 1)}
	for _, name := range o.Topology.Drivers() {
		d, err := o.start(ctx, name, drivers.fail)
		if err != nil {
			drivers.Stop()
			return nil, fmt.Errorf("driver %s: %w", name, err)
		}
		drivers.all = append(drivers.all, d)
	}
	return drivers, nil
}

// Run publishes the devices as soon as an API server is available. It stops the drivers when the context ends, which is no error,
// or when one of them fails.
func (d *Drivers) Run(ctx context.Context) error {
	publishing := make(chan struct{})
	go func() {
		defer close(publishing)
		if err := d.Publish(ctx, d.topology); err != nil {
			d.fail(err)
		}
	}()
	var err error
	select {
	case err = <-d.failed:
	case <-ctx.Done():
	}
	// Without this call, the goroutine that publishes could wait for an API server forever.
	d.Stop()
	<-publishing
	return err
}

// fail makes Run return the error. Later errors are ignored.
func (d *Drivers) fail(err error) {
	select {
	case d.failed <- err:
	default:
	}
}

// Stop ends the drivers after their current calls. It does not delete the ResourceSlices. The kubelet deletes them if the
// driver does not come back.
func (d *Drivers) Stop() {
	for _, driver := range d.all {
		driver.helper.Stop()
	}
}

// Publish replaces the topology. The new one must have the same drivers. See [Driver.Publish].
func (d *Drivers) Publish(ctx context.Context, t topology.Topology) error {
	var errs []error
	for _, driver := range d.all {
		errs = append(errs, driver.Publish(ctx, t))
	}
	return errors.Join(errs...)
}

// start creates a driver and starts its server.
func (o Options) start(ctx context.Context, name string, fail func(error)) (*Driver, error) {
	d, err := o.newDriver(name, fail)
	if err != nil {
		return nil, err
	}
	// The helper must not end with ctx, because Stop ends it and waits for current calls.
	d.helper, err = kubeletplugin.Start(context.WithoutCancel(ctx), d,
		kubeletplugin.DriverName(name),
		kubeletplugin.NodeName(o.NodeName),
		kubeletplugin.KubeClient(o.Client),
		kubeletplugin.PluginDataDirectoryPath(d.sockets.dataDir),
		kubeletplugin.RegistrarDirectoryPath(d.sockets.registryDir),
		kubeletplugin.RollingUpdate(o.PodUID),
		kubeletplugin.GRPCInterceptor(d.noteRegistration),
	)
	return d, err
}

// newDriver creates a driver and its directories, but does not start its server. It returns an error if the checkpoint exists
// and can't be used.
func (o Options) newDriver(name string, fail func(error)) (*Driver, error) {
	if name == constraintDriver {
		return nil, errors.New("the name is reserved for CEL device constraints; choose another name")
	}
	d := &Driver{name: name, node: o.NodeName, metrics: o.Metrics, fail: fail, healthEvery: defaultHealthInterval}
	if _, err := resources(o.Topology, name, o.NodeName); err != nil {
		return nil, err
	}
	devices := devicesOf(o.Topology, name)
	d.devices.Store(&devices)
	var err error
	if d.sockets, err = newSockets(o.KubeletDir, name, o.PodUID); err != nil {
		return nil, err
	}
	for _, dir := range []string{d.sockets.dataDir, d.sockets.registryDir} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, err
		}
	}
	if d.checkpoint, err = checkpoint.New(d.sockets.dataDir); err != nil {
		return nil, err
	}
	if d.specs, err = cdi.NewDirectory(o.CDIDir, name); err != nil {
		return nil, err
	}
	_, err = d.load()
	return d, err
}

// sockets holds the paths of the sockets on which the kubelet calls a driver.
type sockets struct {
	dataDir, registryDir string
	// service is the socket for requests about claims. registration is the socket that the kubelet uses to find the driver.
	service, registration string
}

// maxSocketPath is the maximum length of a socket path on Linux: 108 bytes, which include a zero byte at the end.
const maxSocketPath = 107

func newSockets(kubeletDir, driver string, pod types.UID) (sockets, error) {
	root, err := filepath.Abs(kubeletDir)
	if err != nil {
		return sockets{}, err
	}
	s := sockets{dataDir: filepath.Join(root, "plugins", driver), registryDir: filepath.Join(root, "plugins_registry")}
	service, registration := "dra.sock", driver+"-reg.sock"
	if pod != "" {
		service, registration = "dra-"+string(pod)+".sock", kubeletplugin.RollingUpdateRegistrarSocketFile(s.registryDir, driver, pod)
	}
	s.service, s.registration = filepath.Join(s.dataDir, service), filepath.Join(s.registryDir, registration)
	for _, path := range []string{s.service, s.registration} {
		if len(path) > maxSocketPath {
			return sockets{}, fmt.Errorf("socket %s: the path has %d bytes, but the system allows at most %d: use a shorter kubelet directory or driver name",
				path, len(path), maxSocketPath)
		}
	}
	return s, nil
}
