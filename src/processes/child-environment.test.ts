import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pickFrontEnvironment, pickMachineEnvironment, pickWorkerEnvironment } from './child-environment.ts'

const all = {
  PATH: '/bin',
  LC_ALL: 'C',
  NODE_OPTIONS: '--no-warnings',
  NODE_AUTH_TOKEN: 'npm',
  AWS_SECRET_ACCESS_KEY: 'aws',
  DATABASE_URL: 'postgres://u:p@h/d',
  DATABASE_READ_URL: 'postgres://u:p@r/d',
  CLICKHOUSE_URL: 'http://u:p@c/d',
  PENNON_PERSONAL_KEY: 'phx_',
  PENNON_ENCRYPTION_KEY: '00',
  PENNON_PROJECT_KEY: 'phc_',
  PENNON_DATA: '/data',
}

describe('the environment of a child process', () => {
  it('contains only general system variables for the engine', () => {
    assert.deepEqual(pickMachineEnvironment(all), { PATH: '/bin', LC_ALL: 'C', NODE_OPTIONS: '--no-warnings' })
  })

  it('omits the first personal key, and for a worker also the encryption key', () => {
    const missing = (environment: NodeJS.ProcessEnv) => Object.keys(all).filter(name => environment[name] === undefined)
    assert.deepEqual(missing(pickWorkerEnvironment(all)), ['PENNON_PERSONAL_KEY', 'PENNON_ENCRYPTION_KEY'])
    assert.deepEqual(missing(pickFrontEnvironment(all)), ['PENNON_PERSONAL_KEY'])
  })
})
