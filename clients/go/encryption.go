package belfry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	keyHeader = "encryption-key"
	keyBytes  = 64
)

// ErrNotDecrypted says that a payload cannot be read: its key is gone, or it is not what was encrypted.
var ErrNotDecrypted = errors.New("the payload cannot be decrypted")

// keyReference is a tenant and the number of its key: what a header says is never a path.
var keyReference = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}/k[1-9][0-9]{0,5}$`)

// Keys are the keys of tenants, by references such as shop/k2.
type Keys interface {
	// Current is the reference of a tenant's newest key.
	Current(tenant string) (string, error)
	// Named are the 64 bytes of a key, with an error that wraps fs.ErrNotExist where it is gone.
	Named(reference string) ([]byte, error)
}

// KeyFolder has keys as files: folder/shop/k1 has 64 random bytes. It is the folder of all languages'
// clients, such as a mounted secret.
type KeyFolder string

// Current is the reference of a tenant's newest key.
func (f KeyFolder) Current(tenant string) (string, error) {
	newest := 0
	if keyReference.MatchString(tenant + "/k1") {
		files, err := os.ReadDir(filepath.Join(string(f), tenant))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, file := range files {
			if keyReference.MatchString(tenant + "/" + file.Name()) {
				number, _ := strconv.Atoi(file.Name()[1:])
				newest = max(newest, number)
			}
		}
	}
	if newest == 0 {
		return "", fmt.Errorf("tenant %s has no key in %s: %w", tenant, string(f), fs.ErrNotExist)
	}
	return fmt.Sprintf("%s/k%d", tenant, newest), nil
}

// Named are the bytes of a key.
func (f KeyFolder) Named(reference string) ([]byte, error) {
	if !keyReference.MatchString(reference) {
		return nil, fmt.Errorf("%q names no key: a tenant, a slash, k and a number do, as shop/k1", reference)
	}
	return os.ReadFile(filepath.Join(string(f), filepath.FromSlash(reference)))
}

// Encryption encrypts payloads by their tenants' newest keys, and decrypts them by any that is there.
// Kafka and belfry carry the bytes and never look into them. The cipher is AES-SIV (RFC 5297): the
// same payload under the same key gives the same bytes, so a request that is repeated is UNCHANGED.
type Encryption struct{ Keys Keys }

// Seal is a schedule with its payload encrypted, and with one more header, which names the key. An
// empty payload stays empty.
func (e Encryption) Seal(schedule Schedule) (Schedule, error) {
	if len(schedule.Payload) == 0 {
		return schedule, nil
	}
	reference, err := e.Keys.Current(schedule.Tenant)
	if err != nil {
		return schedule, err
	}
	cipher, err := e.cipher(reference)
	if err != nil {
		return schedule, err
	}
	schedule.Payload = cipher.seal(schedule.Payload, []byte(reference))
	own := schedule.Headers
	schedule.Headers = append(own[:len(own):len(own)], header(keyHeader, reference))
	return schedule, nil
}

// Open is the payload of an event as it was before; that of one that nobody encrypted as it is.
func (e Encryption) Open(event FiredEvent) ([]byte, error) {
	return e.OpenRecord(event.Tenant, event.Record)
}

// OpenRecord is the same for any record with the headers of an event; tenant is "" where it is not known.
func (e Encryption) OpenRecord(tenant string, record *kgo.Record) ([]byte, error) {
	reference, named := last(record.Headers, keyHeader)
	if !named || len(record.Value) == 0 {
		return record.Value, nil
	}
	// The writer of the record wrote this too: no other Keys than a folder has to doubt it.
	if !keyReference.MatchString(reference) {
		return nil, fmt.Errorf("%w: the record's header %s names no key", ErrNotDecrypted, keyHeader)
	}
	if whose, _, _ := strings.Cut(reference, "/"); tenant != "" && whose != tenant {
		return nil, fmt.Errorf("%w: %s is a key of another tenant than %s", ErrNotDecrypted, reference, tenant)
	}
	cipher, err := e.cipher(reference)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotDecrypted, err)
	}
	payload, ok := cipher.open(record.Value, []byte(reference))
	if !ok {
		return nil, fmt.Errorf("%w: it is not what was encrypted with %s", ErrNotDecrypted, reference)
	}
	return payload, nil
}

func (e Encryption) cipher(reference string) (siv, error) {
	key, err := e.Keys.Named(reference)
	if err != nil {
		return siv{}, fmt.Errorf("key %s: %w", reference, err)
	}
	if len(key) != keyBytes {
		return siv{}, fmt.Errorf("key %s has %d bytes: %d are one", reference, len(key), keyBytes)
	}
	return newSIV(key)
}
