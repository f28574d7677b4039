#include "tests/emulator/fiber.h"

#include <cstdint>
#include <cstring>

// Pushes the callee-saved registers, stores the stack pointer in *keep and continues on the stack
// `other`. The library's swapcontext makes a system call each time, and there are millions of
// calls.
extern "C" void tw_switch_stack(std::byte** keep, std::byte* other);
asm(R"(
.text
.globl tw_switch_stack
tw_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace tw::emulator {

Fiber::Fiber(void (*body)()) {
  constexpr size_t kRegisters = 6;
  void* frame[kRegisters + 2] = {};
  frame[kRegisters] = reinterpret_cast<void*>(body);  // return address of the first switch
  std::byte* const end = stack_.get() + kStack;
  top_ = end - reinterpret_cast<uintptr_t>(end) % 16 - sizeof frame;
  std::memcpy(top_, frame, sizeof frame);
}

void Fiber::resume() { tw_switch_stack(&caller_, top_); }

void Fiber::suspend() { tw_switch_stack(&top_, caller_); }

}  // namespace tw::emulator
