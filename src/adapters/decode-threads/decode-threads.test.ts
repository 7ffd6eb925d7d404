import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createSilentLogger } from '#telemetry/log.ts'
import { createDecodeThreads, type DecodeThreadsOptions, decodeThreadDefaults } from './decode-threads.ts'
import type { JobHandlers } from './serve-thread-jobs.ts'

type Job =
  | { echo: number; urgent?: true }
  | { threadId: true }
  | { wait: true }
  | { by: string; echo: number }
  | { exit: true }
  | { bytes: Uint8Array<ArrayBuffer> }

interface Jobs {
  readonly any: readonly [Job, number]
}

const entry = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId } from 'node:worker_threads'
    parentPort.on('message', ({ job }) => {
      if (job.exit) process.exit(3)
      if (job.threadId) parentPort.postMessage(threadId)
      else if (!job.wait) parentPort.postMessage(job.bytes ? job.bytes.length : job.echo)
    })
  `)}`,
)

function startThreads(t: TestContext, over: Partial<DecodeThreadsOptions<Jobs>> = {}) {
  let restarts = 0
  const pool = createDecodeThreads<Jobs>({
    entry,
    threadCount: 1,
    isUrgent: ({ job }) => 'urgent' in job,
    queuedJobCountMax: 2,
    queuedBytesMax: 100,
    heapMegabytesMax: 64,
    jobTimeoutMs: 60_000,
    idleMs: 60_000,
    logger: createSilentLogger(),
    onRestart: () => restarts++,
    ...over,
  })
  t.after(() => pool.close())
  const run = (job: Job, bytes: number, buffers: ArrayBuffer[], gone?: AbortSignal) =>
    pool.run('any', job, bytes, buffers, gone)
  return { threads: { run, close: () => pool.close() }, restarts: () => restarts }
}

describe('decode threads', () => {
  it('run each kind of job with its own handler, and return the result type of that kind', async t => {
    interface Kinds {
      readonly add: readonly [readonly number[], number]
      readonly shout: readonly [string, { readonly text: string }]
    }
    const handlers: JobHandlers<Kinds> = {
      add: terms => ({ outcome: terms.reduce((sum, term) => sum + term, 0) }),
      shout: text => ({ outcome: { text: text.toUpperCase() } }),
    }
    const { add, shout } = handlers
    const module = `import { serveThreadJobs } from '${new URL('./serve-thread-jobs.ts', import.meta.url)}'
      serveThreadJobs({ add: ${add}, shout: ${shout} })`
    const threads = createDecodeThreads<Kinds>({
      ...decodeThreadDefaults,
      entry: new URL(`data:text/javascript,${encodeURIComponent(module)}`),
      isUrgent: () => false,
      logger: createSilentLogger(),
      onRestart: () => assert.fail('a thread died'),
    })
    t.after(() => threads.close())
    const sum: number = await threads.run('add', [1, 2, 3], 1, [])
    const { text } = await threads.run('shout', 'hey', 1, [])
    assert.deepEqual([sum, text], [6, 'HEY'])
    // Calls that the compiler must refuse; none is executed.
    // @ts-expect-error: the job of another kind
    const wrongJob = () => threads.run('add', 'hey', 1, [])
    // @ts-expect-error: the outcome of another kind
    const wrongOutcome = async (): Promise<string> => threads.run('add', [1], 1, [])
    // @ts-expect-error: a kind without a handler
    const incomplete: JobHandlers<Kinds> = { add }
    assert.equal([wrongJob, wrongOutcome, incomplete].length, 3)
  })
  it('run jobs in the order in which they came, and transfer their buffers', async t => {
    const { threads } = startThreads(t, { queuedJobCountMax: 20 })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, echo) => threads.run({ echo }, 1, [])))
    assert.deepEqual(answers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    const bytes = new Uint8Array(10)
    assert.equal(await threads.run({ bytes }, 10, [bytes.buffer]), 10)
    assert.equal(bytes.length, 0)
  })
  it('refuse jobs that exceed the queue’s limits of count or bytes', async t => {
    const { threads } = startThreads(t)
    const stuck = threads.run({ wait: true }, 1, [])
    const queued = threads.run({ echo: 1 }, 60, [])
    await assert.rejects(threads.run({ echo: 2 }, 60, []), { code: 'unavailable' })
    const last = threads.run({ echo: 3 }, 40, [])
    await assert.rejects(threads.run({ echo: 4 }, 0, []), { code: 'unavailable' })
    const rejected = Promise.all([stuck, queued, last].map(job => assert.rejects(job, { code: 'unavailable' })))
    await threads.close()
    await rejected
    await assert.rejects(threads.run({ echo: 5 }, 0, []), { code: 'unavailable' })
  })
  it('run urgent jobs before ordinary jobs, which still get a turn', async t => {
    const { threads } = startThreads(t, { queuedJobCountMax: 20 })
    const done: string[] = []
    const run = (echo: number, urgent?: true) =>
      threads
        .run({ echo, ...(urgent && { urgent }) }, 1, [])
        .then(() => done.push(`${urgent ? 'urgent' : 'other'} ${echo}`))
    const others = [0, 1, 2].map(echo => run(echo))
    const urgents = [0, 1, 2, 3, 4, 5].map(echo => run(echo, true))
    await Promise.all([...others, ...urgents])
    const passed = ['urgent 0', 'urgent 1', 'urgent 2', 'urgent 3']
    assert.deepEqual(done, ['other 0', ...passed, 'other 1', 'urgent 4', 'urgent 5', 'other 2'])
  })
  it('let senders take turns, and refuse jobs of the sender with the most jobs when the queue is full', async t => {
    const { threads } = startThreads(t, {
      queuedJobCountMax: 4,
      senderOf: ({ job }) => ({ sender: 'by' in job ? job.by : '' }),
    })
    const done: string[] = []
    const run = (by: string, echo: number) =>
      threads.run({ by, echo }, 1, []).then(
        () => done.push(`${by} ${echo}`),
        () => done.push(`${by} ${echo} refused`),
      )
    const flood = [0, 1, 2, 3, 4, 5].map(echo => run('flood', echo))
    const others = [run('one', 0), run('other', 0)]
    await Promise.all([...flood, ...others])
    assert.deepEqual(done.toSorted(), [
      'flood 0',
      'flood 1',
      'flood 2',
      'flood 3 refused',
      'flood 4 refused',
      'flood 5 refused',
      'one 0',
      'other 0',
    ])
    const turns = done.filter(text => !text.endsWith('refused'))
    assert.deepEqual(turns, ['flood 0', 'flood 1', 'one 0', 'other 0', 'flood 2'])
  })
  it('drop a waiting job when its client disconnects, and finish a running job', async t => {
    const { threads } = startThreads(t, { queuedJobCountMax: 20 })
    const gone = new AbortController()
    const running = threads.run({ echo: 1 }, 1, [], gone.signal)
    const bytes = new Uint8Array(10)
    const waiting = threads.run({ bytes }, 10, [bytes.buffer], gone.signal)
    const urgent = threads.run({ echo: 2, urgent: true }, 1, [], gone.signal)
    const next = threads.run({ echo: 3 }, 1, [])
    gone.abort()
    await Promise.all([waiting, urgent].map(job => assert.rejects(job, { code: 'unavailable' })))
    assert.deepEqual(await Promise.all([running, next]), [1, 3])
    assert.equal(bytes.length, 10, 'it was not sent to the thread')
    assert.equal(await threads.run({ echo: 4 }, 1, [], gone.signal), 4, 'a free thread takes it all the same')
    await Promise.all([
      threads.run({ echo: 5 }, 1, []),
      assert.rejects(threads.run({ echo: 6 }, 1, [], gone.signal), { code: 'unavailable' }),
    ])
  })
  it('keep one of several threads for urgent jobs, and run other jobs in turn on the remaining threads', async t => {
    const { threads } = startThreads(t, { threadCount: 2, queuedJobCountMax: 20 })
    const stuck = threads.run({ wait: true }, 1, [])
    const waiting = threads.run({ echo: 1 }, 1, [])
    assert.equal(await threads.run({ echo: 2, urgent: true }, 1, []), 2)
    assert.equal(await Promise.race([waiting, threads.run({ echo: 3, urgent: true }, 1, [])]), 3)
    const rejected = Promise.all([stuck, waiting].map(job => assert.rejects(job, { code: 'unavailable' })))
    await threads.close()
    await rejected
  })
  it('fail a job that cannot be sent to a thread, and continue with the next', async t => {
    const { threads } = startThreads(t, { queuedJobCountMax: 20 })
    const bytes = new Uint8Array(4)
    structuredClone(bytes, { transfer: [bytes.buffer] })
    const unsendable = threads.run({ bytes }, 1, [bytes.buffer])
    const next = threads.run({ echo: 5 }, 1, [])
    await assert.rejects(unsendable, { code: 'unavailable' })
    assert.equal(await next, 5)
  })
  it('accept an urgent job however many ordinary jobs wait, and vice versa', async t => {
    const { threads } = startThreads(t)
    // Fails when the pool is closed below, which this test does not check.
    void threads.run({ wait: true }, 1, []).catch(() => undefined)
    const queued = [threads.run({ echo: 0 }, 50, []), threads.run({ echo: 1 }, 50, [])]
    await assert.rejects(threads.run({ echo: 2 }, 0, []), { code: 'unavailable' })
    queued.push(threads.run({ echo: 3, urgent: true }, 50, []), threads.run({ echo: 4, urgent: true }, 50, []))
    await assert.rejects(threads.run({ echo: 5, urgent: true }, 0, []), { code: 'unavailable' })
    const rejected = Promise.all(queued.map(job => assert.rejects(job, { code: 'unavailable' })))
    await threads.close()
    await rejected
  })
  it('fail the job of a thread that dies, replace the thread, and continue with the queue', async t => {
    const { threads, restarts } = startThreads(t)
    const lost = threads.run({ exit: true }, 1, [])
    const next = threads.run({ echo: 7 }, 1, [])
    await assert.rejects(lost, { code: 'unavailable' })
    assert.equal(await next, 7)
    assert.equal(restarts(), 1)
  })
  it('are started by a job that finds no free thread, and end when idle', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { threads, restarts } = startThreads(t, { threadCount: 2, idleMs: 50 })
    const first = await threads.run({ threadId: true }, 1, [])
    const again = await threads.run({ threadId: true }, 1, [])
    assert.equal(again, first, 'the one that runs is used first')
    t.mock.timers.tick(50)
    assert.notEqual(await threads.run({ threadId: true }, 1, []), first)
    assert.equal(restarts(), 0)
  })
  it('give up a job that takes too long, and end its thread', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { threads, restarts } = startThreads(t, { jobTimeoutMs: 1_500 })
    const late = assert.rejects(threads.run({ wait: true }, 1, []), { code: 'timeout' })
    t.mock.timers.tick(1_500)
    await late
    assert.equal(await threads.run({ echo: 8 }, 1, []), 8)
    assert.equal(restarts(), 1)
  })
})
