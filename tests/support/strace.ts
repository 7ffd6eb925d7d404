import { execFileSync } from 'node:child_process'

/** Whether strace is installed: tests that watch or disturb system calls are skipped without it. */
export function hasStrace(): boolean {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
