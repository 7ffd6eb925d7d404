import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createSilentLogger } from '#telemetry/log.ts'
import { type MmdbOptions, writeMmdb } from '../../../tests/support/mmdb-writer.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { type GeoipDatabase, openGeoipFile, openGeoipPackage } from './open-geoip.ts'

function openWritten(t: TestContext, options: Partial<MmdbOptions>) {
  const path = join(tempDir(t), 'test.mmdb')
  writeFileSync(path, writeMmdb({ ipVersion: 6, networks: [], ...options }))
  const opened = openGeoipFile(path, createSilentLogger())
  if (opened.ok) t.after(() => opened.value.close())
  return opened
}

/** Null after `t.skip`, where the package is not installed. */
function openInstalled(t: TestContext): GeoipDatabase | null {
  const opened = openGeoipPackage(createSilentLogger())
  assert.ok(opened.ok)
  if (opened.value === null) {
    assert.ok(!process.env.CI, 'the optional package of GeoIP data is not installed')
    t.skip('the optional package of GeoIP data is not installed')
  } else t.after(() => opened.value?.close())
  return opened.value
}

describe('openGeoipPackage', () => {
  it('finds locations for IPv4 and IPv6 addresses, and none for private addresses', t => {
    const geoip = openInstalled(t)
    if (geoip === null) return
    const placeOf = (address: string) => {
      const location = geoip.lookUp(address)
      return location && [location.city_name, location.country_code, location.country_name, location.continent_code]
    }
    assert.deepEqual(placeOf('12.87.118.0'), ['Cleveland', 'US', 'United States', 'NA'])
    assert.deepEqual(placeOf('::ffff:12.87.118.0'), ['Cleveland', 'US', 'United States', 'NA'])
    assert.deepEqual(placeOf('193.0.6.139'), [null, 'NL', 'The Netherlands', 'EU'])
    assert.deepEqual(placeOf('2001:67c:2e8:22::c100:68b'), ['Amsterdam', 'NL', 'The Netherlands', 'EU'])
    for (const address of ['127.0.0.1', '::1', '10.0.0.5', '192.168.1.1', 'fe80::1', '2001:db8::1', 'nonsense', ''])
      assert.equal(placeOf(address), null, address)
    assert.equal(geoip.lookUp('12.87.118.0'), geoip.lookUp('12.87.118.0'), 'an address is looked up once')
    assert.ok(geoip.builtAtMs > Date.parse('2026-01-01') && geoip.builtAtMs < Date.parse('2027-01-01'))
  })
})

describe('openGeoipFile', () => {
  it('reads a file of MaxMind’s own schema', t => {
    const country = { iso_code: 'NO', names: { en: 'Norway', de: 'Norwegen' } }
    const opened = openWritten(t, {
      networks: [
        [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 84, 208], 112, { country, city: { names: { en: 'Oslo' } } }],
        [[0x2a, 0x00], 16, { country }],
      ],
    })
    assert.ok(opened.ok)
    const { lookUp } = opened.value
    assert.deepEqual([lookUp('84.208.1.1')?.city_name, lookUp('84.208.1.1')?.country_name], ['Oslo', 'Norway'])
    assert.deepEqual([lookUp('2a00::1')?.city_name, lookUp('2a00::1')?.country_code], [null, 'NO'])
    assert.deepEqual([lookUp('84.209.1.1'), lookUp('10.0.0.1')], [null, null])
  })

  it('finds no location for a private address, even if the file has one', t => {
    const opened = openWritten(t, { ipVersion: 4, networks: [[[0], 1, { country_code: 'NO' }]] })
    assert.ok(opened.ok)
    assert.deepEqual(
      ['9.1.1.1', '10.1.1.1', '127.0.0.1'].map(address => opened.value.lookUp(address)?.country_code),
      ['NO', undefined, undefined],
    )
  })

  it('names the path in an error when the file cannot be used', t => {
    const folder = tempDir(t)
    const text = join(folder, 'a.txt')
    writeFileSync(text, 'no database')
    const errorOf = (path: string) => {
      const opened = openGeoipFile(path, createSilentLogger())
      return opened.ok ? '' : opened.error
    }
    assert.equal(errorOf(join(folder, 'missing.mmdb')), 'the file does not exist')
    assert.equal(errorOf(folder), 'it is not a file')
    assert.equal(errorOf(text), 'it is not a MaxMind DB file')
    const ofNetworks = openWritten(t, { databaseType: 'GeoLite2-ASN' })
    assert.deepEqual(ofNetworks, { ok: false, error: 'it is a database of type "GeoLite2-ASN", not a City database' })
  })

  it('continues without locations when the file is damaged, and logs the damage once', t => {
    const path = join(tempDir(t), 'test.mmdb')
    const written = writeMmdb({ ipVersion: 4, networks: [[[0], 1, { country_code: 'NO' }]] })
    written[written.indexOf('country_code') - 1] = 0xe5 // the key is a map now
    writeFileSync(path, written)
    const lines: string[] = []
    const logger = { error: (_details: unknown, line: string) => lines.push(line) }
    const opened = openGeoipFile(path, logger as never)
    assert.ok(opened.ok)
    assert.deepEqual([opened.value.lookUp('1.1.1.1'), opened.value.lookUp('2.2.2.2')], [null, null])
    assert.equal(lines.length, 1)
    opened.value.close()
  })
})
