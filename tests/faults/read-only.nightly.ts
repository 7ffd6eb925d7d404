// A file system that the kernel makes read-only under a running instance, as after a disk error: events are refused
// with a reason, flags still work, and the instance can be stopped. The kernel allows writes only after the file system
// was checked and mounted again; a start then continues with everything acknowledged.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor } from '../support/pennon.ts'

const MiB = 1024 * 1024

test('while the disk is read-only, events are refused with the reason and a stop exits with 0; later a start works', {
  skip: cannotMount(),
}, async t => {
  const disk = aDisk(t)
  const pennon = await started(t, disk.folder)
  assert.equal((await pennon.capture('before')).status, 200)
  await pennon.caughtUp()

  disk.fail()
  // Without a request, since a client that gets 503 may send nothing more.
  await eventually(async () => (await pennon.readiness()).capture === 'log_unavailable')
  const { capture_reason: reason, flags } = await pennon.readiness()
  assert.match(reason!, /read-only file system/i)
  assert.equal(flags, 'ok')
  const refused = await pennon.capture('refused')
  assert.equal(refused.status, 503)
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  assert.equal((await pennon.decide()).status, 200)
  await assert.rejects(pennon.api('POST', '/api/projects/@current/feature_flags/', { key: 'refused' }), /: 503 /)
  assert.match(pennon.output(), /read-only file system/i)
  assert.equal(await pennon.stop(), 0, pennon.output())

  await disk.mend()
  const next = await started(t, disk.folder)
  assert.equal((await next.capture('after')).status, 200)
  await next.caughtUp()
  assert.deepEqual(await next.eventNames(), ['after', 'before'])
  assert.equal(await next.stop(), 0)
})

async function started(t: TestContext, folder: string): Promise<Pennon> {
  const settings = { PENNON_MIN_FREE_BYTES: String(MiB) }
  const pennon = await startPennonFor(t, { dataFolder: join(folder, 'data'), settings })
  return pennon
}

interface Disk {
  readonly folder: string
  /** Makes it read-only, as the kernel does after an error in the file system's data. */
  fail(): void
  mend(): Promise<void>
}

function aDisk(t: TestContext): Disk {
  const place = mkdtempSync(join(tmpdir(), 'pennon-read-only-'))
  const [image, folder] = [join(place, 'image'), mkdtempSync(join(place, 'disk-'))]
  makeFileSystem(image, 512 * MiB)
  mount(image, folder)
  t.after(() => {
    execFileSync('umount', ['-l', folder])
    rmSync(place, { recursive: true })
  })
  return {
    folder,
    fail: () => {
      const device = execFileSync('findmnt', ['-no', 'SOURCE', folder], { encoding: 'utf8' }).trim()
      writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, '1')
    },
    mend: async () => {
      execFileSync('umount', [folder])
      // The loop device may still write after the unmount, over the repairs of the check.
      await eventually(() => execFileSync('losetup', ['-j', image], { encoding: 'utf8' }) === '', { what: 'no device' })
      checkFileSystem(image)
      mount(image, folder)
    },
  }
}

function makeFileSystem(image: string, bytes: number): void {
  writeFileSync(image, '')
  truncateSync(image, bytes)
  execFileSync('mkfs.ext4', ['-q', '-F', image], { stdio: 'pipe' })
}

function mount(image: string, folder: string): void {
  execFileSync('mount', ['-o', 'loop,errors=remount-ro', image, folder], { stdio: 'pipe' })
}

/** @throws unless the file system is sound afterwards; exit code 1 means that something was repaired. */
function checkFileSystem(image: string): void {
  try {
    execFileSync('e2fsck', ['-p', '-f', image], { stdio: 'pipe' })
  } catch (error) {
    if ((error as { status?: number }).status !== 1) throw error
  }
}

function cannotMount(): string | false {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root can mount a file system'
  const place = mkdtempSync(join(tmpdir(), 'pennon-mount-'))
  const [image, folder] = [join(place, 'image'), mkdtempSync(join(place, 'disk-'))]
  try {
    makeFileSystem(image, 16 * MiB)
    mount(image, folder)
    execFileSync('umount', [folder])
    return false
  } catch (error) {
    return `an image cannot be mounted: ${(error as Error).message}`
  } finally {
    rmSync(place, { recursive: true })
  }
}
