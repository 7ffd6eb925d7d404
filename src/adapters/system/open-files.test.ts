import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const module = fileURLToPath(new URL('./open-files.ts', import.meta.url))

describe('the limit on open files', () => {
  for (const limit of ['700', '1024'])
    it(`is the limit with which the process was started: ${limit}`, () => {
      const program = `import(process.argv[1]).then(m => console.log(m.readOpenFilesMax()))`
      const command = `ulimit -n ${limit}; exec "$@"`
      const args = [
        '-c',
        command,
        'sh',
        process.execPath,
        '--disable-warning=ExperimentalWarning',
        '-e',
        program,
        module,
      ]
      assert.equal(execFileSync('sh', args, { encoding: 'utf8' }).trim(), limit)
    })
})
