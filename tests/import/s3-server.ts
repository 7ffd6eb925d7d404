// A real S3 server: s3proxy serving a folder. Its jar is given by S3PROXY_JAR, or downloaded once by Maven.

import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { S3Client } from '@aws-sdk/client-s3'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { jarMissing, mavenJar } from '../support/maven-jar.ts'
import { type Scope, tempDir } from '../support/temp-dir.ts'

const artifact = 'org.gaul:s3proxy:4.1.0:jar:jar-with-dependencies'

export interface S3Server {
  readonly endpoint: string
  readonly client: S3Client
  /** Environment variables for a fetch. */
  readonly credentials: { readonly AWS_ACCESS_KEY_ID: string; readonly AWS_SECRET_ACCESS_KEY: string }
}

/** The reason why this machine has no S3 server, or false. */
export const s3Missing: string | false = process.env.S3PROXY_JAR === undefined ? jarMissing(artifact, 'java') : false

export async function startS3(t: Scope): Promise<S3Server> {
  const folder = tempDir(t)
  const port = await freePort()
  const credentials = { AWS_ACCESS_KEY_ID: 'importer', AWS_SECRET_ACCESS_KEY: 'secret-of-the-importer' }
  mkdirSync(join(folder, 'data'))
  const config = [
    `s3proxy.endpoint=http://127.0.0.1:${port}`,
    's3proxy.authorization=aws-v2-or-v4',
    `s3proxy.identity=${credentials.AWS_ACCESS_KEY_ID}`,
    `s3proxy.credential=${credentials.AWS_SECRET_ACCESS_KEY}`,
    'jclouds.provider=filesystem-nio2',
    `jclouds.filesystem.basedir=${join(folder, 'data')}`,
  ]
  writeFileSync(join(folder, 's3proxy.conf'), `${config.join('\n')}\n`)
  const java = [
    '-Xmx384m',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-jar',
    process.env.S3PROXY_JAR ?? mavenJar(artifact),
  ]
  const child = spawn('java', [...java, '--properties', join(folder, 's3proxy.conf')], { cwd: folder, stdio: 'ignore' })
  t.after(() => void child.kill('SIGKILL'))
  const endpoint = `http://127.0.0.1:${port}`
  await eventually(async () => (await fetch(endpoint)).status > 0, { what: 'the S3 server' })
  const client = new S3Client({
    ...{ endpoint, region: 'us-east-1', forcePathStyle: true },
    credentials: {
      accessKeyId: credentials.AWS_ACCESS_KEY_ID,
      secretAccessKey: credentials.AWS_SECRET_ACCESS_KEY,
    },
  })
  t.after(() => client.destroy())
  return { endpoint, client, credentials }
}
