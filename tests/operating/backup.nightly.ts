// `pennon backup` beside an instance under load. `pennon restore` must restore everything acknowledged before the
// backup began: each event once, and every person as of the last event.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { findFaults, nothingFound, patientTarget, startCheckedLoad } from '../faults/checked-load.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { runCommand, startCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

/** A folder and an instance inside it, which is stopped at the end of the test in any case. */
async function started(t: TestContext, folder: string, name: string): Promise<Pennon> {
  const pennon = await startPennonFor(t, { dataFolder: join(folder, name) })
  return pennon
}

/** A folder that is removed once everything that the test started has exited. */
function testFolder(t: TestContext): string {
  return tempDir({
    after: remove =>
      t.after(async () => {
        await eventually(() => {
          remove()
          return true
        })
      }),
  })
}

const settingsOf = (folder: string, name: string) => ({ PENNON_DATA: join(folder, name), PENNON_LOG_LEVEL: 'warn' })

async function backedUp(folder: string, name: string, file: string): Promise<void> {
  const { exitCode, stderr } = await runCommand(settingsOf(folder, name), 'backup', file)
  assert.equal(exitCode, 0, stderr)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.ok(!existsSync(`${file}.partial`))
  assert.deepEqual(frozenIn(join(folder, name)), [])
}

function frozenIn(dataFolder: string): string[] {
  const shadow = join(dataFolder, 'events', 'store', 'shadow')
  return existsSync(shadow) ? readdirSync(shadow).filter(name => name.startsWith('backup_')) : []
}

async function restored(folder: string, name: string, file: string): Promise<void> {
  const { exitCode, stderr, stdout } = await runCommand(settingsOf(folder, name), 'restore', file)
  assert.equal(exitCode, 0, stderr)
  assert.match(stdout, /all checked/)
}

describe('a backup made while an instance runs', () => {
  it('contains everything acknowledged before it began, even events not processed yet, and restores it elsewhere', async t => {
    const folder = testFolder(t)
    const [file, original] = [join(folder, 'backup.tar'), await started(t, folder, 'original')]
    const early = startCheckedLoad(() => patientTarget(original), { run: 'early ' })
    await eventually(() => early.acknowledgedCount() > 300)
    // Nothing is processed from here on, so the backup must take these events from the log.
    process.kill(original.childPids().work!, 'SIGSTOP')
    const processed = early.acknowledgedCount()
    await eventually(() => early.acknowledgedCount() > processed + 300)
    const sent = await early.stop()

    const late = startCheckedLoad(() => patientTarget(original), { run: 'late ', pauseMs: 20 })
    const answeredBefore = late.answers.get(200) ?? 0
    process.kill(original.childPids().work!, 'SIGCONT')
    await backedUp(folder, 'original', file)
    assert.ok((late.answers.get(200) ?? 0) > answeredBefore, 'nothing was answered during the backup')
    assert.deepEqual([...late.answers.keys()], [200], 'something was refused during the backup')
    await original.killTree()
    late.abandon()

    await restored(folder, 'restored', file)
    const copy = await started(t, folder, 'restored')
    t.diagnostic(`${sent.uuids.length} events acknowledged before, ${statSync(file).size} bytes`)
    assert.doesNotMatch(copy.output(), /ends before the position|missing|the event store has changed/)
    assert.deepEqual(await findFaults(patientTarget(copy), [sent]), nothingFound)
    // The restored instance works like any other.
    const again = startCheckedLoad(() => patientTarget(copy), { run: 'again ' })
    await eventually(() => again.acknowledgedCount() > 50)
    assert.deepEqual(await findFaults(patientTarget(copy), [sent, await again.stop()]), nothingFound)
  })

  it('restores the flags, keys and encrypted payloads, and the restored instance charges each event once', async t => {
    const folder = testFolder(t)
    const [file, original] = [join(folder, 'backup.tar'), await started(t, folder, 'original')]
    const load = startCheckedLoad(() => patientTarget(original))
    await original.api('POST', '/api/projects/@current/feature_flags/', {
      ...{ key: 'limits', is_remote_configuration: true, has_encrypted_payloads: true },
      filters: { groups: [{ rollout_percentage: 100 }], payloads: { true: '{"seats": 50}' } },
    })
    await eventually(() => load.acknowledgedCount() > 200)
    const sent = await load.stop()
    await backedUp(folder, 'original', file)
    assert.equal(await original.stop(), 0)

    await restored(folder, 'restored', file)
    const copy = await started(t, folder, 'restored')
    assert.deepEqual(await findFaults(patientTarget(copy), [sent]), nothingFound)
    const usage = () =>
      copy.api<{ results: { events_charged: number }[] }>('GET', '/api/projects/@current/usage/?date_from=-2d')
    const charged = async () => (await usage()).results.reduce((sum, day) => sum + day.events_charged, 0)
    await eventually(async () => (await charged()) === sent.liveCount, { what: 'usage' })
    const payload = await copy.api<string>('GET', '/api/projects/@current/feature_flags/limits/remote_config')
    assert.deepEqual(JSON.parse(payload), { seats: 50 })
  })

  it('leaves no file under its final name if it is killed, and the next backup removes its temporary files', async t => {
    const folder = testFolder(t)
    const [file, original] = [join(folder, 'backup.tar'), await started(t, folder, 'original')]
    // Enough data for a backup to take a moment.
    writeFileSync(join(folder, 'original', 'log', 'filler'), Buffer.alloc(400 * 1024 * 1024))
    await original.post('/e/', { api_key: testProjectKey, event: 'x', distinct_id: 'ada' })
    await original.caughtUp()
    const begun = startCommand(settingsOf(folder, 'original'), 'backup', file)
    const tar = join(`${file}.partial`, 'backup.tar')
    await eventually(() => existsSync(tar) && statSync(tar).size > 0)
    begun.child.kill('SIGKILL')
    await begun.ended
    assert.ok(!existsSync(file))
    assert.equal(frozenIn(join(folder, 'original')).length, 1)

    const left = statSync(tar).birthtimeMs
    const stopped = startCommand(settingsOf(folder, 'original'), 'backup', file)
    // The new file, not the one left by the killed backup.
    const writesIt = () => existsSync(tar) && statSync(tar).birthtimeMs > left && statSync(tar).size > 1024 * 1024
    await eventually(writesIt)
    stopped.child.kill('SIGINT')
    assert.match((await stopped.ended).stderr, /temporary files were removed/)
    assert.deepEqual([existsSync(file), existsSync(`${file}.partial`)], [false, false])

    await backedUp(folder, 'original', file)
    const twice = await runCommand(settingsOf(folder, 'original'), 'backup', file)
    assert.deepEqual([twice.exitCode, /already exists/.test(twice.stderr)], [2, true], twice.stderr)
    const nowhere = await runCommand(settingsOf(folder, 'original'), 'backup', join(folder, 'missing', 'a.tar'))
    assert.match(nowhere.stderr, /The folder \S+missing does not exist\./)
  })

  it('copies a damaged log segment unchanged, reports it, and contains everything else', async t => {
    const folder = testFolder(t)
    const [file, original] = [join(folder, 'backup.tar'), await started(t, folder, 'original')]
    await original.post('/e/', { api_key: testProjectKey, event: 'x', distinct_id: 'ada' })
    await original.caughtUp()
    assert.equal(await original.stop(), 0)
    const segment = join(folder, 'original', 'log', 'main', '0000000000000000.db')
    const bytes = readFileSync(segment).fill('x', 0, 4096)
    writeFileSync(segment, bytes)
    const { exitCode, stdout, stderr } = await runCommand(settingsOf(folder, 'original'), 'backup', file)
    assert.equal(exitCode, 0, stderr)
    assert.match(stdout, /0000000000000000\.db is damaged .* copied unchanged/)
    await restored(folder, 'restored', file)
    assert.deepEqual(readFileSync(join(folder, 'restored', 'log', 'main', '0000000000000000.db')), bytes)
    const copy = await started(t, folder, 'restored')
    const { results } = await copy.api<{ results: unknown[] }>('GET', '/api/projects/@current/events/')
    assert.equal(results.length, 1)
  })

  it('is refused if damaged, with the name of the damaged file inside it, before anything changes', async t => {
    const folder = testFolder(t)
    const [file, original] = [join(folder, 'backup.tar'), await started(t, folder, 'original')]
    await original.post('/e/', { api_key: testProjectKey, event: 'x', distinct_id: 'ada' })
    await original.caughtUp()
    // A stopped instance can be backed up too; the rest of this test needs only the file.
    assert.equal(await original.stop(), 0)
    await backedUp(folder, 'original', file)

    const whole = readFileSync(file)
    for (const inside of ['state.db', 'log/main/0000000000000000.db', 'log/identity', '/data.bin']) {
      const header = whole.indexOf(inside)
      assert.ok(header > 0, inside)
      const broken = Buffer.from(whole)
      broken[header - (header % 512) + 512 + 30]! ^= 0xff
      const path = join(folder, 'broken.tar')
      writeFileSync(path, broken)
      const { exitCode, stderr } = await runCommand(settingsOf(folder, 'broken'), 'restore', path)
      assert.equal(exitCode, 2)
      assert.match(stderr, /cannot be restored: \S+ in it is damaged/)
      assert.ok(stderr.includes(`${inside} in it`), stderr)
      assert.equal(existsSync(join(folder, 'broken')), false)
    }
    await restored(folder, 'broken', file)
    const full = await runCommand(settingsOf(folder, 'broken'), 'restore', file)
    assert.equal(full.exitCode, 2)
    assert.match(full.stderr, /already contains log, events, state\.db/)
    writeFileSync(join(folder, 'notes.txt'), 'no backup')
    const other = await runCommand(settingsOf(folder, 'untouched'), 'restore', join(folder, 'notes.txt'))
    assert.deepEqual([other.exitCode, /notes\.txt is not a backup/.test(other.stderr)], [2, true], other.stderr)
    assert.equal(existsSync(join(folder, 'untouched')), false)
    mkdirSync(join(folder, 'empty'))
    const nothing = await runCommand(settingsOf(folder, 'empty'), 'backup', join(folder, 'none.tar'))
    assert.deepEqual([nothing.exitCode, /There is no state in/.test(nothing.stderr)], [2, true], nothing.stderr)
  })
})
