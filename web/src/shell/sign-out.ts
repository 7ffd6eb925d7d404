import { ApiError, call } from '../api/client.ts'
import { showToast } from '../components/overlays/toasts.tsx'

/** Ends the session, and with it everything that the page holds of it. */
export async function signOut(): Promise<void> {
  try {
    await call('DELETE /api/session/')
  } catch (error) {
    const isOver = error instanceof ApiError && error.status === 401
    if (!isOver) return showToast({ kind: 'bad', text: `You are still signed in. ${(error as Error).message}` })
  }
  location.assign('/ui/sign-in')
}
