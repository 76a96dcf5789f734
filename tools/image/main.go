// Command image writes an OCI image from scratch: static programs, a CA bundle's place, two users, nothing else. One file
// holds it for every architecture that is given, in the OCI layout, with the manifest.json that older engines load.
// The same input gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// image is what is being written.
type image struct {
	version string
	created time.Time
	files   map[string][]byte // of the layout, by path
}

func run() error {
	version := flag.String("version", "dev", "the image's version, a tag")
	created := flag.String("created", "", "RFC 3339 time of every file")
	license := flag.String("license", "", "file with the license's text")
	out := flag.String("o", "image.tar", "file to write")
	flag.Parse()
	at, err := time.Parse(time.RFC3339, *created)
	if err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	terms, err := os.ReadFile(*license)
	if err != nil {
		return err
	}
	// A tag takes no plus sign.
	im := &image{version: strings.ReplaceAll(*version, "+", "-"), created: at, files: map[string][]byte{}}
	var manifests []descriptor
	var legacy []map[string]any
	for i, arg := range flag.Args() {
		arch, bin, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q: expected ARCH=FOLDER", arg)
		}
		d, old, err := im.add(arch, bin, terms)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		manifests = append(manifests, d)
		if i == 0 { // older engines know one architecture a name
			legacy = append(legacy, old)
		}
	}
	if len(manifests) == 0 {
		return fmt.Errorf("no ARCH=FOLDER is given")
	}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests,
	})
	if err != nil {
		return err
	}
	old, err := json.Marshal(legacy)
	if err != nil {
		return err
	}
	im.files["index.json"], im.files["manifest.json"] = index, old
	im.files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return im.write(*out)
}

// descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (im *image) blob(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	im.files["blobs/sha256/"+digest] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

func (im *image) add(arch, bin string, license []byte) (descriptor, map[string]any, error) {
	plain, err := im.layer(bin, license)
	if err != nil {
		return descriptor{}, nil, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return descriptor{}, nil, err
	}
	if _, err := z.Write(plain); err != nil {
		return descriptor{}, nil, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, nil, err
	}
	sum := sha256.Sum256(plain)
	layer := im.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
	settings, err := json.Marshal(map[string]any{
		"created": im.created.Format(time.RFC3339), "architecture": arch, "os": "linux",
		"config": map[string]any{
			"User": "65532:65532", "Env": []string{"PATH=/usr/bin"},
			"Entrypoint": []string{"/usr/bin/biremed"}, "Cmd": []string{"server", "--dir", "/var/lib/bireme"},
			"WorkingDir": "/", "Volumes": map[string]any{"/var/lib/bireme": struct{}{}},
			"Labels": map[string]string{
				"org.opencontainers.image.title":    "bireme",
				"org.opencontainers.image.version":  im.version,
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
		"history": []map[string]any{{"created": im.created.Format(time.RFC3339), "created_by": "tools/image"}},
	})
	if err != nil {
		return descriptor{}, nil, err
	}
	config := im.blob("application/vnd.oci.image.config.v1+json", settings)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []descriptor{layer},
	})
	if err != nil {
		return descriptor{}, nil, err
	}
	d := im.blob("application/vnd.oci.image.manifest.v1+json", manifest)
	d.Platform = map[string]string{"architecture": arch, "os": "linux"}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": im.version}
	path := func(d descriptor) string { return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:") }
	return d, map[string]any{
		"Config": path(config), "RepoTags": []string{"bireme:" + im.version}, "Layers": []string{path(layer)},
	}, nil
}

// layer is the image's file system as a tar archive. Root owns all of it but the state's folder.
func (im *image) layer(bin string, license []byte) ([]byte, error) {
	var buf bytes.Buffer
	t := tar.NewWriter(&buf)
	put := func(name string, mode int64, owner int, content []byte) error {
		h := &tar.Header{
			Name: name, Mode: mode, Uid: owner, Gid: owner, Size: int64(len(content)), ModTime: im.created, Format: tar.FormatPAX,
			Typeflag: tar.TypeReg,
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := t.Write(content)
		return err
	}
	const user = 65532
	type file struct {
		name    string
		mode    int64
		owner   int
		content string
	}
	for _, f := range []file{
		{"etc/", 0o755, 0, ""},
		{"etc/passwd", 0o644, 0, "root:x:0:0:root:/:/none\nbireme:x:65532:65532:Bireme server:/var/lib/bireme:/none\n"},
		{"etc/group", 0o644, 0, "root:x:0:\nbireme:x:65532:\n"},
		{"etc/bireme/", 0o755, 0, ""},
		{"etc/ssl/", 0o755, 0, ""},
		{"etc/ssl/certs/", 0o755, 0, ""},
		{"run/", 0o755, 0, ""},
		{"tmp/", 0o1777, 0, ""},
		{"usr/", 0o755, 0, ""},
		{"usr/bin/", 0o755, 0, ""},
		{"usr/share/", 0o755, 0, ""},
		{"usr/share/doc/", 0o755, 0, ""},
		{"usr/share/doc/bireme/", 0o755, 0, ""},
		{"usr/share/doc/bireme/copyright", 0o644, 0, string(license)},
		{"var/", 0o755, 0, ""},
		{"var/lib/", 0o755, 0, ""},
		{"var/lib/bireme/", 0o755, user, ""},
	} {
		if err := put(f.name, f.mode, f.owner, []byte(f.content)); err != nil {
			return nil, err
		}
	}
	programs, err := filepath.Glob(filepath.Join(bin, "*"))
	if err != nil || len(programs) == 0 {
		return nil, fmt.Errorf("no programs in %s: %w", bin, err)
	}
	for _, p := range programs {
		content, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if err := put("usr/bin/"+filepath.Base(p), 0o755, 0, content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// write writes the layout's files, sorted.
func (im *image) write(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return im.archive(f)
}

func (im *image) archive(w io.Writer) error {
	t := tar.NewWriter(w)
	names := make([]string, 0, len(im.files))
	for name := range im.files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(im.files[name])), ModTime: im.created, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(im.files[name]); err != nil {
			return err
		}
	}
	return t.Close()
}
