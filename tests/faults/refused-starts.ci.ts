// A start that cannot continue prints the reason in one line and exits with 2.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { acquireDataLock } from '#processes/data-lock.ts'
import { writeMmdb } from '../support/mmdb-writer.ts'
import { runCommand } from '../support/pennon-command.ts'
import { refusedStart } from '../support/refused-start.ts'
import { fillDisk, mountSmallDisk, noSmallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp-dir.ts'

const asRoot = process.getuid?.() === 0

describe('a start is refused', () => {
  it('when the port is in use', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await new Promise(resolve => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const folder = tempDir(t)
    assert.match(await refusedStart(folder, { PORT: String(port) }), new RegExp(`${port}.*in use.*PORT`))
    assert.match(
      await refusedStart(folder, { PENNON_ADMIN_PORT: String(port) }),
      new RegExp(`${port}.*in use.*set PENNON_ADMIN_PORT`),
    )
    assert.deepEqual(readdirSync(folder), [], 'keys were made but never shown')
    await refusedStart(join(folder, 'a', 'b'), { PORT: String(port) })
    assert.deepEqual(readdirSync(folder), [])
  })

  it('when the host to listen on is unknown', async t => {
    assert.match(await refusedStart(tempDir(t), { HOST: 'nonsense.invalid' }), /HOST nonsense\.invalid.*Set HOST/)
  })

  it('when the data folder cannot be written', async t => {
    const folder = tempDir(t)
    chmodSync(folder, 0o755)
    const closed = join(folder, 'closed')
    mkdirSync(closed)
    chmodSync(closed, 0o555)
    // Permissions do not stop root. As another user, Pennon's own files might be inaccessible.
    const launcher = asRoot ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []
    assert.match(await refusedStart(closed, {}, { launcher }), /is not writable.*PENNON_DATA/)
  })

  it('when the disk has too little space, with an error that names the free space and a remedy', {
    skip: noSmallDisk(),
  }, async t => {
    const disk = mountSmallDisk(2 ** 20)
    t.after(disk.remove)
    fillDisk(disk.path)
    assert.match(
      await refusedStart(disk.path),
      /^pennon: The start failed: .*The disk of \S+ has \d+ bytes left\. Free disk space, and start again\.\n$/,
    )
  })

  it('when the data folder is a file', async t => {
    const file = join(tempDir(t), 'notes.txt')
    writeFileSync(file, '')
    assert.match(await refusedStart(file), /notes\.txt is a file\. Set PENNON_DATA to a folder\./)
  })

  it('when a setting is unknown or has an unusable value', async t => {
    const folder = tempDir(t)
    assert.match(await refusedStart(folder, { PENNON_PROJEKT_KEY: 'x' }), /PENNON_PROJEKT_KEY.*PENNON_PROJECT_KEY/)
    assert.match(await refusedStart(folder, { PORT: 'http' }), /PORT/)
  })

  it('when the GeoIP database cannot be read or has no cities', async t => {
    const folder = tempDir(t)
    const missing = join(folder, 'missing.mmdb')
    const ofNetworks = join(folder, 'asn.mmdb')
    writeFileSync(ofNetworks, writeMmdb({ ipVersion: 4, databaseType: 'GeoLite2-ASN', networks: [] }))
    assert.match(await refusedStart(folder, { GEOIP_DATABASE: missing }), /GEOIP_DATABASE.*does not exist/)
    assert.match(
      await refusedStart(folder, { GEOIP_DATABASE: ofNetworks }, { arguments: ['work'] }),
      /GEOIP_DATABASE.*GeoLite2-ASN/,
    )
  })

  it('when a test clock or a table of locations is configured outside of tests', async t => {
    const folder = tempDir(t)
    const production = { NODE_ENV: 'production' }
    assert.match(await refusedStart(folder, production, { arguments: ['work', '--test-clock', '0'] }), /test/)
    assert.match(await refusedStart(folder, production, { arguments: ['work', '--test-geoip', '{}'] }), /--test-geoip/)
  })

  it('for a second worker that was started manually next to a running instance', async t => {
    const folder = tempDir(t)
    const lock = await acquireDataLock(folder, { command: 'serve', waitMsMax: 0 })
    assert.ok(lock.ok)
    t.after(() => lock.value.release())
    const refused = await refusedStart(folder, {}, { arguments: ['work'] })
    assert.match(refused, /process \d+ \(pennon serve\) is using the data folder .* and runs its own worker/)
  })

  it('for a worker whose state cannot be opened, with a one-line error without a stack trace', async t => {
    const folder = tempDir(t)
    writeFileSync(join(folder, 'state.db'), 'this is a text, and a long one, but no database'.repeat(100))
    const settings = { PENNON_DATA: folder, PENNON_LOG_LEVEL: 'error' }
    const { exitCode, stdout, stderr } = await runCommand(settings, 'work')
    assert.deepEqual([exitCode, stderr, stdout.split('\n').length], [1, '', 2], stdout)
    assert.match(JSON.parse(stdout).msg, /^this process cannot start: state: corrupt: /)
  })

  it('when the state is damaged or missing, with an error that names the file, and no new state is created', async t => {
    const folder = tempDir(t)
    const file = join(folder, 'state.db')
    writeFileSync(file, 'this is a text, and a long one, but no database'.repeat(100))
    assert.match(await refusedStart(folder), /state\.db is damaged \(file is not a database\)\. Restore .*PENNON_DATA/)

    for (const make of ['mkdir', 'mkfifo']) {
      rmSync(file, { recursive: true })
      execFileSync(make, [file])
      assert.match(await refusedStart(folder), /state\.db is not a file\. Move it away, and restore /)
    }

    rmSync(file)
    mkdirSync(join(folder, 'events'))
    writeFileSync(join(folder, 'events/endpoint.json'), '{}')
    assert.match(await refusedStart(folder), /state\.db is missing, and events\/ .*DATABASE_URL.*backup/)
    assert.deepEqual(readdirSync(folder), ['events'])
  })
})
