import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { it } from 'node:test'

it('a child that cannot open its stores exits after its last log line, even if the thread that writes is busy', () => {
  const urlOf = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const code = `
    import { pbkdf2 } from 'node:crypto'
    import { PortError } from ${urlOf('../ports/port-error.ts')}
    import { createLogger } from ${urlOf('../telemetry/log.ts')}
    import { openOrEndProcess } from ${urlOf('./open-as-child.ts')}
    const logger = createLogger({ level: 'info', process: 'work' })
    pbkdf2('', '', 200_000, 64, 'sha512', () => {})
    for (const line of ['first', 'second']) logger.info(line)
    await openOrEndProcess(logger, () => Promise.reject(new PortError('state', 'unavailable')))`
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, UV_THREADPOOL_SIZE: '1' },
  })
  const lines = ['first', 'second', 'this process cannot start: state: unavailable']
  assert.deepEqual([status, stdout.match(/(?<="msg":")[^"]+/g)], [1, lines])
})
