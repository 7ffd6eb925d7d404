import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseFetchConfig } from './fetch-config.ts'
import { createBasicCredentials, findSecret, redactSecrets } from './fetch-secrets.ts'

const may = { from: '2024-05-01', to: '2024-05-31' }

describe('the configuration of a fetch', () => {
  it('is refused with a message about what is missing, wrong or unknown', () => {
    const complaints: [object | null, RegExp][] = [
      [null, /must be an object/],
      [{}, /source must be one of mixpanel/],
      [{ source: 'heap' }, /source must be one of/],
      [{ source: 'mixpanel' }, /mixpanel needs from and to/],
      [{ source: 'matomo', ...may }, /matomo needs host and site_id/],
      [{ source: 'posthog', ...may }, /posthog needs project_id/],
      [{ source: 's3' }, /s3 needs s3_url/],
      [{ source: 's3', s3_url: 'https://bucket.example' }, /s3:\/\/BUCKET\/PREFIX/],
      [{ source: 'http' }, /http needs list/],
      [{ source: 'mixpanel', ...may, region: 'mars' }, /region must be us, eu or in/],
      [{ source: 'mixpanel', ...may, to: '2024-05-32' }, /to must be a day/],
      [{ source: 'mixpanel', ...may, window_days: 0 }, /window_days must be an integer from 1 to 365/],
      [{ source: 'mixpanel', ...may, api_secret: 'x' }, /no key api_secret/],
      [{ source: 'mixpanel', ...may, host: 'https://user:word@example.com' }, /without a password/],
      [{ source: 'mixpanel', ...may, host: 'ftp://example.com' }, /an address such as/],
    ]
    for (const [config, complaint] of complaints) assert.throws(() => parseFetchConfig(config), complaint)
  })

  it('takes the bucket and the prefix from one URL', () => {
    const bucketOf = (url: string) => parseFetchConfig({ source: 's3', s3_url: url }).s3_url
    assert.deepEqual(bucketOf('s3://acme/logs/2024/part-'), { bucket: 'acme', prefix: 'logs/2024/part-' })
    assert.deepEqual(bucketOf('s3://acme'), { bucket: 'acme', prefix: '' })
  })
})

describe('secrets', () => {
  it('are read from a variable, or from the file that a variable names', () => {
    assert.equal(findSecret({ KEY: 'k' }, 'KEY'), 'k')
    assert.equal(findSecret({ KEY: '', KEY_FILE: 'package.json' }, 'KEY')!.startsWith('{'), true)
    assert.equal(findSecret({}, 'KEY'), null)
    assert.throws(() => findSecret({ KEY_FILE: '/nowhere' }, 'KEY'), /KEY_FILE cannot be read \(ENOENT\)/)
  })

  it('are masked in messages that contain them, also percent-encoded', () => {
    const text = redactSecrets('bad key a/b+c\r\n in ?key=a%2Fb%2Bc&x=1', ['a/b+c', ''])
    assert.equal(text, 'bad key … in ?key=…&x=1')
  })
  it('are masked in the Base64 form of Basic authorization, with and without its padding', () => {
    const { authorization: header, secrets } = createBasicCredentials('user', 'a+b/c')
    assert.match(header, /==$/)
    const echoed = `authorization: ${header}, ${header.replace('==', '')}, ${encodeURIComponent(header)}`
    assert.equal(redactSecrets(echoed, secrets), 'authorization: Basic …, Basic …, Basic%20…')
    // A user name that occurs within the Base64 does not keep the rest of it from being masked.
    const short = createBasicCredentials('d', 'secret-of-a-user')
    assert.equal(redactSecrets(short.authorization, short.secrets), 'Basic …')
  })
})
