import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeConfig, readConfig } from './config.ts'

describe('readConfig', () => {
  it('needs nothing', () => {
    const config = readConfig({})
    assert.ok(config.ok)
    assert.equal(config.value.port, 8000)
    assert.equal(config.value.host, '127.0.0.1')
    assert.equal(config.value.logBytesMax, 10 * 2 ** 30)
    assert.match(config.value.dataFolder, /^\/.*\/data$/)
  })

  it('refuses an unknown PENNON_ name and says which one was probably meant', () => {
    const config = readConfig({ PENNON_LOG_LEVLE: 'info' })
    assert.ok(!config.ok)
    assert.match(config.error, /PENNON_LOG_LEVLE.*PENNON_LOG_LEVEL/)
    assert.ok(!config.error.includes('\n'))
    const unprefixed = readConfig({ PENNON_PORT: '9000' })
    assert.ok(!unprefixed.ok)
    assert.match(unprefixed.error, /Did you mean PORT\?/)
  })

  it('suggests the setting that an unknown name shortens', () => {
    const config = readConfig({ PENNON_REROUTE_OLDER_DAYS: '3' })
    assert.ok(!config.ok)
    assert.match(config.error, /Did you mean PENNON_REROUTE_OLDER_THAN_DAYS\?/)
  })

  it('refuses one port for both servers, unless the system chooses it', () => {
    const same = readConfig({ PORT: '9000', PENNON_ADMIN_PORT: '9000' })
    assert.ok(!same.ok)
    assert.match(same.error, /PORT and PENNON_ADMIN_PORT are both 9000/)
    assert.ok(!readConfig({ PENNON_ADMIN_PORT: '8000' }).ok)
    assert.ok(readConfig({ PORT: '0', PENNON_ADMIN_PORT: '0' }).ok)
  })

  it('suggests nothing for an unknown PENNON_ name that resembles no setting', () => {
    const config = readConfig({ PENNON_FOO: '1' })
    assert.ok(!config.ok)
    assert.equal(
      config.error,
      'Unknown setting PENNON_FOO. All settings: `bin/pennon config` (docs/operating/settings.md).',
    )
  })

  it('says which values a setting accepts if its value is invalid', () => {
    for (const [name, value, hint] of [
      ['PORT', 'eighty', /a port/],
      ['PORT', '70000', /a port/],
      ['PENNON_LOG_MAX_BYTES', '10 gigs', /GiB/],
      ['PENNON_LOG_MAX_BYTES', '63MiB', /at least 64MiB/],
      ['PENNON_UNKNOWN_KEYS', 'maybe', /reject or accept/],
      ['PENNON_PROJECT_KEY', 'phx_secret', /phx_/],
      ['PENNON_TRUSTED_PROXIES', 'everyone', /CIDR/],
      ['PENNON_FRONT_PROCESSES', '0', /1 to 64/],
      ['PENNON_PUBLIC_URL', 'shop.example', /http\(s\):/],
      ['PENNON_PUBLIC_URL', 'https://shop.example/?a=1', /without a query/],
      ['PENNON_PUBLIC_URL', 'https://user:secret@shop.example', /without a query/],
      ['PENNON_METRICS_REQUIRE_KEY', 'yes', /true or false/],
      ['PENNON_REROUTE_OLDER_THAN_DAYS', '0', /from 1 to 3650/],
      ['PENNON_REROUTE_OLDER_THAN_DAYS', '1.5', /from 1 to 3650/],
      ['PENNON_REROUTE_OLDER_THAN_DAYS', '100000', /from 1 to 3650/],
    ] as const) {
      const config = readConfig({ [name]: value })
      assert.ok(!config.ok, name)
      assert.match(config.error, hint)
    }
  })

  it('refuses settings of unsupported stores instead of ignoring them', () => {
    const config = readConfig({ KAFKA_BROKERS: '127.0.0.1:9092' })
    assert.ok(!config.ok)
    assert.match(config.error, /KAFKA_BROKERS/)
  })

  it('accepts a PostgreSQL for the state, and a replica only with it', () => {
    const url = 'postgresql://u:pw@h:5432/d?sslmode=require'
    const config = readConfig({ DATABASE_URL: url, DATABASE_READ_URL: 'postgres://r/d' })
    assert.ok(config.ok)
    assert.deepEqual([config.value.databaseUrl, config.value.databaseReadUrl], [url, 'postgres://r/d'])
    const alone = readConfig({ DATABASE_READ_URL: url })
    assert.ok(!alone.ok)
    assert.match(alone.error, /without DATABASE_URL/)
    const undecodable = ['postgres://u:pw@h/%zz', 'postgres://u:pw%zz@h/d', 'postgres://%ff:pw@h/d']
    for (const wrong of ['mysql://u:pw@h/d', 'host=h password=pw', ...undecodable]) {
      const refused = readConfig({ DATABASE_URL: wrong })
      assert.ok(!refused.ok, wrong)
      assert.match(refused.error, /^DATABASE_URL [^\n]+$/)
      assert.ok(!refused.error.includes('pw'))
    }
  })

  it('accepts a public address with or without a path, and removes its final slash', () => {
    const publicUrlOf = (text: string) => {
      const read = readConfig({ PENNON_PUBLIC_URL: text })
      return read.ok ? read.value.publicUrl : read.error
    }
    for (const [text, publicUrl] of [
      ['', null],
      ['https://shop.example', 'https://shop.example'],
      ['https://shop.example:8443/flags/', 'https://shop.example:8443/flags'],
    ] as const)
      assert.equal(publicUrlOf(text), publicUrl)
  })

  it('accepts encryption keys of 256 bits, separated by commas, and no passphrases', () => {
    const keysOf = (text: string) => {
      const read = readConfig({ PENNON_ENCRYPTION_KEY: text })
      return read.ok ? read.value.encryptionKeys : read.error
    }
    const [a, b] = ['a'.repeat(64), 'b'.repeat(64)]
    assert.deepEqual([keysOf(''), keysOf(a), keysOf(`${b.toUpperCase()} ,${a}`)], [[], [a], [b, a]])
    for (const text of ['secret', 'a'.repeat(63), `${a},`, `${a} ${b}`, `${'a'.repeat(63)}g`])
      assert.match(String(keysOf(text)), /^PENNON_ENCRYPTION_KEY is not usable; expected 64 hexadecimal digits/)
  })

  it('never repeats a secret, neither in an error nor in the listing', () => {
    const wrong = readConfig({ PENNON_PERSONAL_KEY: 'hunter2' })
    assert.ok(!wrong.ok)
    assert.ok(!wrong.error.includes('hunter2'))
    const lines = describeConfig({
      PENNON_PERSONAL_KEY: 'phx_01234567890123456789',
      CLICKHOUSE_URL: 'http://u:pw@h:8123/d',
      DATABASE_URL: 'postgres://u:pw@h/d',
      DATABASE_READ_URL: 'postgres://u:pw@r/d',
    })
    for (const [variable, text] of [
      ['PENNON_PROJECT_KEY', 'phx_hunter2hunter2hunter2'],
      ['PORT', 'phs_hunter2'],
      ['PENNON_PUBLIC_URL', 'https://ada:hunter2@pennon.example'],
    ] as const) {
      const misplaced = readConfig({ [variable]: text })
      assert.ok(!misplaced.ok && misplaced.error.includes(variable))
      assert.doesNotMatch(misplaced.error + JSON.stringify(describeConfig({ [variable]: text })), /hunter2/)
    }
    assert.ok(!JSON.stringify(lines).includes('0123456789'))
    assert.ok(!JSON.stringify(lines).includes('pw@'))
    assert.equal(lines.find(line => line.variable === 'PORT')?.origin, 'default')
  })

  it('ignores the variables that Kubernetes sets for services called pennon and pennon-admin', () => {
    const links = {
      PENNON_SERVICE_HOST: '10.0.0.7',
      PENNON_SERVICE_PORT: '8000',
      PENNON_SERVICE_PORT_HTTP: '8000',
      PENNON_PORT: 'tcp://10.0.0.7:8000',
      PENNON_PORT_8000_TCP: 'tcp://10.0.0.7:8000',
      PENNON_PORT_8000_TCP_PROTO: 'tcp',
      PENNON_PORT_8000_TCP_PORT: '8000',
      PENNON_PORT_8000_TCP_ADDR: '10.0.0.7',
      PENNON_ADMIN_SERVICE_HOST: '10.0.0.8',
      PENNON_ADMIN_PORT: 'tcp://10.0.0.8:8001',
      PENNON_ADMIN_PORT_8001_UDP: 'udp://10.0.0.8:8001',
    }
    assert.deepEqual(readConfig(links), readConfig({}))
    assert.deepEqual(describeConfig(links), describeConfig({}))
    const mistaken = readConfig({ ...links, PENNON_PORT: '9000' })
    assert.match(mistaken.ok ? '' : mistaken.error, /Unknown setting PENNON_PORT\. Did you mean PORT/)
  })

  it('accepts a schema name that needs no quotes', () => {
    const schemaOf = (name: string) => {
      const read = readConfig({ PENNON_DATABASE_SCHEMA: name })
      return read.ok ? read.value.databaseSchema : read.error
    }
    assert.equal(schemaOf('flags_2'), 'flags_2')
    assert.equal(schemaOf(''), null)
    for (const name of ['a b', 'A', 'a"b', 'pg_mine', '2', 'a,public', 'x'.repeat(64)])
      assert.match(String(schemaOf(name)), /PENNON_DATABASE_SCHEMA is .*expected lower-case/)
  })
})
