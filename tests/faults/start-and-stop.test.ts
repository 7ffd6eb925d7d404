import assert from 'node:assert/strict'
import { fork, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { writeMmdb } from '../support/mmdb-writer.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const asRoot = process.getuid?.() === 0

/** Runs the CLI to its end. As root, permissions stop nobody, so `asNobody` gives them up. */
async function runCli(args: readonly string[], settings: Record<string, string>, asNobody = false) {
  const launcher = asNobody && asRoot ? ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'] : []
  const command = [...launcher, process.execPath, '--disable-warning=ExperimentalWarning', 'src/main.ts', ...args]
  const child = spawn(command[0]!, command.slice(1), {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', chunk => {
    stdout += chunk
  })
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  const code = await new Promise<number | null>(resolve => child.once('close', resolve))
  return { code, stdout, stderr }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function assertRefused(result: { code: number | null; stderr: string }, hint: RegExp): void {
  assert.equal(result.code, 2, result.stderr)
  assert.match(result.stderr, hint)
  assert.equal(result.stderr.trim().split('\n').length, 1, `more than one line: ${result.stderr}`)
}

/** What `/metrics` shows of a series; undefined when it does not. */
async function sample({ url }: Pennon, series: string): Promise<number | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const line = text.split('\n').find(each => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length))
}

describe('a start that cannot go on says why in one line and ends with 2', () => {
  it('when the port is in use', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await new Promise(resolve => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const folder = tempDir(t)
    assertRefused(
      await runCli(['serve'], { PORT: String(port), PENNON_DATA: folder }),
      new RegExp(`${port}.*in use.*PORT`),
    )
    assertRefused(
      await runCli(['serve'], { PORT: '0', PENNON_ADMIN_PORT: String(port), PENNON_DATA: folder }),
      new RegExp(`${port}.*in use.*set PENNON_ADMIN_PORT`),
    )
    assert.ok(!existsSync(join(folder, 'state.db')), 'keys were made that nobody was shown')
  })

  it('when nothing is known of the host to listen on', async t => {
    const settings = { HOST: 'nonsense.invalid', PORT: '0', PENNON_DATA: tempDir(t) }
    assertRefused(await runCli(['serve'], settings), /HOST nonsense\.invalid.*Set HOST/)
  })

  it('when the data folder cannot be written', async t => {
    const folder = tempDir(t)
    chmodSync(folder, 0o755)
    const closed = join(folder, 'closed')
    mkdirSync(closed)
    chmodSync(closed, 0o555)
    assertRefused(await runCli(['serve'], { PORT: '0', PENNON_DATA: closed }, true), /cannot be written.*PENNON_DATA/)
  })

  it('when a setting is unknown or has no usable value', async t => {
    const PENNON_DATA = tempDir(t)
    assertRefused(
      await runCli(['serve'], { PENNON_DATA, PENNON_PROJEKT_KEY: 'x' }),
      /PENNON_PROJEKT_KEY.*PENNON_PROJECT_KEY/,
    )
    assertRefused(await runCli(['serve'], { PENNON_DATA, PORT: 'http' }), /PORT/)
  })

  it('when the GeoIP database cannot be read or is none of cities', async t => {
    const settings = { PORT: '0', PENNON_DATA: tempDir(t) }
    const missing = join(settings.PENNON_DATA, 'missing.mmdb')
    const ofNetworks = join(settings.PENNON_DATA, 'asn.mmdb')
    writeFileSync(ofNetworks, writeMmdb({ ipVersion: 4, databaseType: 'GeoLite2-ASN', networks: [] }))
    assertRefused(await runCli(['serve'], { ...settings, GEOIP_DATABASE: missing }), /GEOIP_DATABASE.*no such file/)
    assertRefused(await runCli(['work'], { ...settings, GEOIP_DATABASE: ofNetworks }), /GEOIP_DATABASE.*GeoLite2-ASN/)
  })

  it('when a test clock or a table of locations is asked for outside of tests', async t => {
    assertRefused(
      await runCli(['work', '--test-clock', '0'], { PENNON_DATA: tempDir(t), NODE_ENV: 'production' }),
      /test/,
    )
    assertRefused(
      await runCli(['work', '--test-geoip', '{}'], { PENNON_DATA: tempDir(t), NODE_ENV: 'production' }),
      /--test-geoip/,
    )
  })
})

describe('an instance', () => {
  it('leaves the first steps on a terminal, without the chatter of the engine', async t => {
    // The engine writes its trace log to stderr when that is a terminal, so a pipe would not show it.
    const command = `${process.execPath} --disable-warning=ExperimentalWarning src/main.ts serve`
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined, PORT: '0', PENNON_DATA: tempDir(t) }
    const terminal = spawn('script', ['-qec', command, '/dev/null'], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let screen = ''
    terminal.stdout.on('data', chunk => {
      screen += chunk
    })
    const ended = new Promise(resolve => terminal.once('close', resolve))
    const url = await eventually(() => /serving on (http:\S+)/.exec(screen)?.[1], {
      timeoutMs: 20_000,
      what: 'the start',
    })
    await eventually(async () => (await (await fetch(`${url}/_readiness`)).text()).includes('"processing":"ok"'), {
      timeoutMs: 20_000,
    })
    process.kill(-terminal.pid!, 'SIGTERM')
    await ended
    assert.ok(screen.split('\n').length < 40, `a screen has to hold it:\n${screen.slice(0, 2_000)}`)
  })

  it('keeps data and keys over a stop and a start, ends with 0 and leaves no process behind', async t => {
    const dataFolder = tempDir(t)
    const first = await startPennon({ dataFolder })
    const created = await first.post('/capture/', {
      api_key: testProjectKey,
      event: 'kept',
      distinct_id: 'ada',
      uuid: '0197c5a0-0000-7000-8000-00000000aaaa',
    })
    assert.equal(created.status, 200)
    const children = Object.values(first.childPids())
    assert.equal(children.length, 2)
    const startedStopping = performance.now()
    assert.equal(await first.stop(), 0, first.output())
    assert.ok(performance.now() - startedStopping < 10_000)
    assert.deepEqual(children.filter(isAlive), [])

    const second = await startPennon({ dataFolder })
    t.after(() => second.stop())
    await second.caughtUp()
    const { results } = await second.api<{ results: { event: string }[] }>('GET', '/api/projects/@current/events/')
    assert.deepEqual(
      results.map(event => event.event),
      ['kept'],
    )
    assert.ok(!second.output().includes(testPersonalKey), 'the personal key is shown at the first start only')
  })

  it('makes files for its user alone, in a folder that others may read too', async t => {
    const dataFolder = tempDir(t)
    chmodSync(dataFolder, 0o755)
    const pennon = await startPennon({ dataFolder })
    t.after(() => pennon.stop())
    await pennon.post('/capture/', { api_key: testProjectKey, event: 'e', distinct_id: 'ada' })
    await pennon.caughtUp()
    const files = readdirSync(dataFolder, { recursive: true, withFileTypes: true })
    const open = files
      .map(file => join(file.parentPath, file.name))
      .filter(path => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077)
    assert.ok(files.length > 10)
    assert.deepEqual(open, [])
  })

  it('ends with 0 in time while a client has sent half a request', async t => {
    const pennon = await startPennon({ waitForProcessing: false })
    const client = connect(pennon.port, '127.0.0.1')
    t.after(() => client.destroy())
    client.on('error', () => undefined) // being cut off is what this is about
    const head = 'POST /capture/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n'
    await new Promise(resolve => client.write(`${head}{"api_key":`, resolve))
    await fetch(`${pennon.url}/_liveness`) // by now the server has read what came before
    const startedStopping = performance.now()
    assert.equal(await pennon.stop(), 0, pennon.output())
    assert.ok(performance.now() - startedStopping < 9_000)
  })

  it('serves what a connection still sends while it stops', async t => {
    const pennon = await startPennon({ waitForProcessing: false })
    const client = connect(pennon.port, '127.0.0.1')
    t.after(() => client.destroy())
    let answers = ''
    client.on('data', chunk => {
      answers += chunk
    })
    const body = JSON.stringify({ api_key: testProjectKey, event: 'last', distinct_id: 'ada' })
    const request = `POST /capture/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    await new Promise(resolve => client.write(request.slice(0, -10), resolve))
    await fetch(`${pennon.url}/_liveness`) // by now the server has read what came before
    const stopped = pennon.stop()
    await eventually(() =>
      fetch(`${pennon.url}/_liveness`).then(
        () => false,
        () => true,
      ),
    )
    client.write(request.slice(-10) + request)
    await new Promise(resolve => client.once('close', resolve))
    assert.match(answers, /^HTTP\/1.1 200 /)
    assert.doesNotMatch(answers, /HTTP\/1.1 [45]/)
    assert.equal(await stopped, 0, pennon.output())
  })

  it('has fronts that end with their parent, also while they are starting', async t => {
    const pennon = await startPennon({ dataFolder: tempDir(t), waitForProcessing: false })
    await pennon.stop()
    const front = fork('src/main.ts', ['front'], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, PORT: '0', PENNON_DATA: pennon.dataFolder },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    t.after(() => front.kill('SIGKILL'))
    const ended = new Promise(resolve => front.once('exit', resolve))
    await new Promise(resolve => front.once('spawn', resolve))
    front.disconnect()
    const timeout = new Promise(resolve => setTimeout(() => resolve('still there'), 15_000).unref())
    assert.equal(await Promise.race([ended, timeout]), 0)
  })

  it('refuses a second start on its folder, naming who holds it', async t => {
    const pennon = await startPennon({ waitForProcessing: false })
    t.after(() => pennon.stop())
    assertRefused(
      await runCli(['serve'], { PORT: '0', PENNON_DATA: pennon.dataFolder }),
      new RegExp(`in use by process ${pennon.pid}`),
    )
  })

  it('starts worker and engine again when they are killed, and answers flags and capture meanwhile', async t => {
    const pennon = await startPennon()
    t.after(() => pennon.stop())
    for (const name of ['work', 'events'] as const) {
      const killed = pennon.childPids()[name]!
      process.kill(killed, 'SIGKILL')
      assert.equal((await pennon.post('/decide?v=3', { api_key: testProjectKey, distinct_id: 'ada' })).status, 200)
      assert.equal(
        (await pennon.post('/capture/', { api_key: testProjectKey, event: `after ${name}`, distinct_id: 'ada' }))
          .status,
        200,
      )
      await eventually(() => pennon.childPids()[name] !== undefined && pennon.childPids()[name] !== killed, {
        what: `a new ${name}`,
      })
    }
    await pennon.caughtUp()
    const { results } = await pennon.api<{ results: { event: string }[] }>('GET', '/api/projects/@current/events/')
    assert.deepEqual(results.map(event => event.event).sort(), ['after events', 'after work'])
  })

  it('shows of a worker that is down what it counted, and nothing that it measured of itself', async t => {
    const pennon = await startPennon()
    t.after(() => pennon.stop())
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
    // Before it comes to its first report.
    process.kill(next, 'SIGSTOP')
    assert.equal(await bytes(), undefined)
    const kept = (await seconds())!
    assert.ok(kept >= counted)
    process.kill(next, 'SIGCONT')
    await eventually(bytes, { what: 'a report of the next worker' })
    assert.ok((await seconds())! > kept, 'a sum that falls and rises again is counted twice')
  })

  it('leaves no orphan when the front is killed', async t => {
    const dataFolder = tempDir(t)
    const pennon = await startPennon({ dataFolder })
    const children = Object.values(pennon.childPids())
    process.kill(pennon.pid, 'SIGKILL')
    await eventually(() => !children.some(isAlive), { what: 'the end of the children' })
  })

  it('ignores a signal to its whole process group in the children, so that the front can end them in order', async t => {
    const dataFolder = tempDir(t)
    const pennon = await startPennon({ dataFolder })
    const children = Object.values(pennon.childPids())
    for (const pid of children) process.kill(pid, 'SIGTERM')
    await new Promise(resolve => setTimeout(resolve, 300))
    assert.deepEqual(children.map(isAlive), [true, true])
    process.kill(-pennon.pid, 'SIGTERM')
    await eventually(() => !isAlive(pennon.pid) && !children.some(isAlive), { what: 'the end of all' })
  })
})

describe('several fronts on one port', () => {
  it('serve what any of them wrote, and the numbers of all processes', async t => {
    const pennon: Pennon = await startPennon({ settings: { PENNON_FRONT_PROCESSES: '2' } })
    t.after(() => pennon.stop())
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
})
