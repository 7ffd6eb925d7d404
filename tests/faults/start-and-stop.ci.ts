// One instance from its first start to its last stop. The tests run in order on the same folder, since starts take most
// of the time. Each test creates what it needs if the earlier tests failed or were not run.

import assert from 'node:assert/strict'
import { fork, spawn } from 'node:child_process'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { childProcessesOf, collectText, isAlive } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { refusedStart } from '../support/refused-start.ts'
import { tempDir } from '../support/temp-dir.ts'

/** The value of a series in `/metrics`; undefined when it is missing. */
async function sample({ url }: Pennon, series: string): Promise<number | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const line = text.split('\n').find(each => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length))
}

describe('an instance that starts and stops', () => {
  it('prints first steps that fit on a terminal screen, without output of the engine', async t => {
    // The engine writes its trace log to stderr only on a terminal, so a pipe would not show it.
    const command = `${process.execPath} --disable-warning=ExperimentalWarning src/main.ts serve`
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined, PORT: '0', PENNON_DATA: tempDir(t) }
    const terminal = spawn('script', ['-qec', command, '/dev/null'], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const screen = collectText(terminal.stdout)
    const ended = new Promise(resolve => terminal.once('close', resolve))
    const url = await eventually(() => /serving on (http:\S+)/.exec(screen())?.[1], {
      what: 'the start',
    })
    await eventually(async () => (await (await fetch(`${url}/_readiness`)).text()).includes('"processing":"ok"'))
    process.kill(-terminal.pid!, 'SIGTERM')
    await ended
    assert.ok(screen().split('\n').length < 40, `more than a screen:\n${screen().slice(0, 2_000)}`)
  })

  const dataFolder = tempDir({ after })
  /** Whether the folder has the event of the first start. */
  let isKept = false

  async function captureKept(pennon: Pennon): Promise<void> {
    const created = await pennon.post('/capture/', {
      api_key: testProjectKey,
      event: 'kept',
      distinct_id: 'ada',
      uuid: '0197c5a0-0000-7000-8000-00000000aaaa',
    })
    assert.equal(created.status, 200)
    await pennon.caughtUp()
    isKept = true
  }

  describe('at its first start', () => {
    let pennon: Pennon

    before(async () => {
      chmodSync(dataFolder, 0o755)
      pennon = await startPennon({ dataFolder })
    })
    after(() => pennon?.killTree())

    it('has private files, even in a folder that others may read', async () => {
      await captureKept(pennon)
      const files = readdirSync(dataFolder, { recursive: true, withFileTypes: true })
      const open = files
        .map(file => join(file.parentPath, file.name))
        .filter(path => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077)
      assert.ok(files.length > 10)
      assert.deepEqual(open, [])
    })

    it('lets the front handle a signal to the whole process group: it stops its children and exits with 0', async () => {
      const children = Object.values(pennon.childPids())
      assert.equal(children.length, 2)
      for (const pid of children) process.kill(pid, 'SIGTERM')
      await new Promise(resolve => setTimeout(resolve, 300))
      assert.deepEqual(children.map(isAlive), [true, true])
      process.kill(-pennon.pid, 'SIGTERM')
      await eventually(() => !isAlive(pennon.pid) && !children.some(isAlive), { what: 'the end of all' })
      assert.equal(await pennon.stop(), 0, pennon.output())
    })
  })

  describe('at its second start', () => {
    let pennon: Pennon
    let another: Promise<string>

    before(async () => {
      if (!isKept) {
        pennon = await startPennon({ dataFolder })
        await captureKept(pennon)
        await pennon.stop()
      }
      pennon = await startPennon({ dataFolder })
      another = refusedStart(dataFolder) // waits 10 s for the folder before it gives up
      another.catch(() => undefined) // its test awaits it
    })
    after(() => pennon?.killTree())

    const storedNames = async () => {
      await pennon.caughtUp()
      return pennon.eventNames()
    }

    it('has the data and keys of the first start, and does not print the keys again', async () => {
      assert.deepEqual(await storedNames(), ['kept'])
      assert.ok(!pennon.output().includes(testPersonalKey), 'the personal key is shown only at the first start')
    })

    it('restarts killed workers and engines, and meanwhile serves flags and accepts events', async () => {
      for (const name of ['work', 'events'] as const) {
        const killed = pennon.childPids()[name]!
        process.kill(killed, 'SIGKILL')
        assert.equal((await pennon.decide()).status, 200)
        assert.equal((await pennon.capture(`after ${name}`)).status, 200)
        await eventually(() => pennon.childPids()[name] !== undefined && pennon.childPids()[name] !== killed, {
          what: `a new ${name}`,
        })
      }
      assert.deepEqual(await storedNames(), ['after events', 'after work', 'kept'])
    })

    it('keeps a dead worker’s counters in the metrics, but not its gauges', async () => {
      const [bytes, seconds] = ['process_resident_memory_bytes', 'process_cpu_seconds_total'].map(
        name => () => sample(pennon, `${name}{process="work"}`),
      ) as [() => Promise<number | undefined>, () => Promise<number | undefined>]
      await eventually(bytes, { what: 'a report of the worker' })
      assert.equal(await sample(pennon, 'pennon_processes{process="work"}'), 1)
      const counted = (await seconds())!
      const killed = pennon.childPids().work!
      process.kill(killed, 'SIGKILL')
      const next = await eventually(() => {
        const pid = pennon.childPids().work
        return pid === killed ? undefined : pid
      })
      // Stopped before its first report.
      process.kill(next, 'SIGSTOP')
      assert.equal(await bytes(), undefined)
      const kept = (await seconds())!
      assert.ok(kept >= counted)
      process.kill(next, 'SIGCONT')
      await eventually(bytes, { what: 'a report of the next worker' })
      assert.ok((await seconds())! > kept, 'a sum that falls and rises again would be counted twice')
    })

    it('refuses another start on the folder, and names the process that holds it', async () => {
      assert.match(await another, new RegExp(`in use by process ${pennon.pid}`))
    })

    it('stops in time with exit code 0 despite a half-sent request, and leaves no process', async t => {
      const children = Object.values(pennon.childPids())
      assert.equal(children.length, 2)
      const client = connect(pennon.port, '127.0.0.1')
      t.after(() => client.destroy())
      client.on('error', () => undefined) // being cut off is the point
      const head =
        'POST /capture/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n'
      await new Promise(resolve => client.write(`${head}{"api_key":`, resolve))
      await fetch(`${pennon.url}/_liveness`) // by then the server has read the earlier bytes
      // A stop that takes too long exits with another code.
      assert.equal(await pennon.stop(), 0, pennon.output())
      assert.deepEqual(children.filter(isAlive), [])
    })
  })

  it('serves requests on open connections during the stop', async t => {
    const pennon = await startPennon({ dataFolder, waitForProcessing: false })
    const client = connect(pennon.port, '127.0.0.1')
    t.after(() => client.destroy())
    const answers = collectText(client)
    const body = JSON.stringify({ api_key: testProjectKey, event: 'last', distinct_id: 'ada' })
    const request = `POST /capture/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    await new Promise(resolve => client.write(request.slice(0, -10), resolve))
    await fetch(`${pennon.url}/_liveness`) // by then the server has read the earlier bytes
    const stopped = pennon.stop()
    await eventually(() =>
      fetch(`${pennon.url}/_liveness`).then(
        () => false,
        () => true,
      ),
    )
    client.write(request.slice(-10) + request)
    await new Promise(resolve => client.once('close', resolve))
    assert.match(answers(), /^HTTP\/1.1 200 /)
    assert.doesNotMatch(answers(), /HTTP\/1.1 [45]/)
    assert.equal(await stopped, 0, pennon.output())
  })

  it('has fronts that exit when their parent exits, even while they start', async t => {
    const front = fork('src/main.ts', ['front'], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, PORT: '0', PENNON_DATA: dataFolder },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    t.after(() => front.kill('SIGKILL'))
    const ended = new Promise(resolve => front.once('exit', resolve))
    await new Promise(resolve => front.once('spawn', resolve))
    front.disconnect()
    const timeout = new Promise(resolve => setTimeout(() => resolve('still there'), 120_000).unref())
    assert.equal(await Promise.race([ended, timeout]), 0)
  })
})

describe('several fronts on one port', () => {
  const dataFolder = tempDir({ after })
  let pennon: Pennon

  before(async () => {
    pennon = await startPennon({ dataFolder, settings: { PENNON_FRONT_PROCESSES: '2' } })
  })
  after(() => pennon?.killTree())

  it('all serve what any of them wrote, and report the metrics of all processes', async () => {
    const kinds = ['front', 'work', 'events'].map(kind => sample(pennon, `pennon_processes{process="${kind}"}`))
    assert.deepEqual(await Promise.all(kinds), [2, 1, 1])
    await pennon.api('POST', '/api/projects/@current/feature_flags/', {
      key: 'on',
      filters: { groups: [{ rollout_percentage: 100 }] },
    })
    await eventually(async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, async () => {
          const response = await pennon.post(
            '/decide?v=3',
            { api_key: testProjectKey, distinct_id: 'ada' },
            { connection: 'close' },
          )
          return ((await response.json()) as { featureFlags: Record<string, unknown> }).featureFlags.on
        }),
      )
      return answers.every(value => value === true)
    })
    for (let index = 0; index < 10; index++) {
      const response = await pennon.post(
        '/capture/',
        { api_key: testProjectKey, event: 'shared', distinct_id: `u${index}` },
        { connection: 'close' },
      )
      assert.equal(response.status, 200)
    }
    await pennon.caughtUp()
    const { results } = await pennon.api<{ results: unknown[] }>('GET', '/api/projects/@current/events/?event=shared')
    assert.equal(results.length, 10)
  })

  it('leave no orphan process when the supervisor is killed', async () => {
    const others = childProcessesOf(pennon.pid)
    for (const pid of Object.values(pennon.childPids())) assert.ok(others.includes(pid))
    assert.equal(others.length, 4, 'two fronts, the worker and the engine')
    process.kill(pennon.pid, 'SIGKILL')
    await eventually(() => !others.some(isAlive), { what: 'the end of the children' })
  })
})
