/*
 * cloister-later: wait until something is sent to descriptor 3, then become the program.
 *
 *   argv: DESCRIPTOR-OF-PROGRAM ARGV0 [ARGUMENT...]
 *   fd 3: the channel on which the program will be asked; others as the program wants them
 *
 * Core gives up the right to start anything before its first call, so its supervisor and its
 * launcher of commands must be there before that, and many sessions need neither. Started as this,
 * each costs a page or two and 0.4 ms; a C library alone takes more than that to start, most of it
 * in asking the processor what it is. So there is none here: a start of our own and system calls.
 *
 * What was sent is not read, the program finds it. When nothing ever is, this ends with status 0.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>

enum { FD_CHANNEL = 3, PEEK = 2 /* MSG_PEEK, recv(2) */, INTERRUPTED = -4, EXEC_FAILED = 127 };

#if defined(__x86_64__)

/* The stack as the kernel leaves it (System V ABI, 3.4.1) becomes the argument. */
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov %rsp,%rdi\n\tand $-16,%rsp\n\tcall "
	"later\n");

static long call(long number, long a, long b, long c, long d, long e)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

#elif defined(__aarch64__)

__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tmov x30,#0\n\tmov x0,sp\n\tb later\n");

static long call(long number, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = 0;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

#else
#	error "cloister-later knows the system calls of x86-64 and AArch64; meson.build leaves it out elsewhere"
#endif

__attribute__((noreturn)) static void end(long status)
{
	for (;;)
		(void)call(__NR_exit_group, status, 0, 0, 0, 0);
}

/* Made by us, so it is a number; -1 else. */
static long number(const char *s)
{
	long n = 0;
	for (const char *p = s; *p; p++)
		if (*p < '0' || *p > '9' || (n = n * 10 + (*p - '0')) > 1000000)
			return -1;
	return *s ? n : -1;
}

__attribute__((noreturn, used)) void later(const long *stack);
void later(const long *stack)
{
	long argc = stack[0], r;
	const char *const *argv = (const char *const *)(stack + 1);
	char first;
	if (argc < 3)
		end(EXEC_FAILED);
	long program = number(argv[1]);
	if (call(__NR_fcntl, program, F_SETFD, FD_CLOEXEC, 0, 0) < 0)
		end(EXEC_FAILED);
	do
		r = call(__NR_recvfrom, FD_CHANNEL, (long)&first, 1, PEEK, 0);
	while (r == INTERRUPTED);
	if (r <= 0)
		end(r == 0 ? 0 : EXEC_FAILED);
	(void)call(__NR_execveat, program, (long)"", (long)(argv + 2), (long)(argv + argc + 1),
		AT_EMPTY_PATH);
	end(EXEC_FAILED);
}
