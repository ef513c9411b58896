//! A neural network in memory.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::port::SenseError;
use rten::{
    Model, ModelOptions, NodeId, OpRegistry, RunOptions, ThreadPool, ValueOrView, op_registry,
};
use rten_tensor::Tensor;

use crate::worker::failed;

/// A network and the threads that compute it.
pub(crate) struct Network {
    model: Model,
    threads: Arc<ThreadPool>,
    output: NodeId,
}

impl Network {
    /// Reads an ONNX file.
    pub(crate) fn load(path: &Path, threads: &Arc<ThreadPool>) -> Result<Self, SenseError> {
        let bytes = read(path)?;
        let model = ModelOptions::with_ops(operators()).load(bytes);
        Self::new(model.map_err(|error| unusable(path, &error))?, threads)
    }

    /// Combines a graph with weights from another file.
    pub(crate) fn with_weights(
        graph: &'static [u8],
        weights: &Path,
        threads: &Arc<ThreadPool>,
    ) -> Result<Self, SenseError> {
        let mut options = ModelOptions::with_ops(operators());
        options.external_data("weights.onnx.data", read(weights)?);
        let model = options.load_static_slice(graph);
        Self::new(model.map_err(|error| unusable(weights, &error))?, threads)
    }

    fn new(model: Model, threads: &Arc<ThreadPool>) -> Result<Self, SenseError> {
        let output = model.output_ids().first().copied();
        let output = output.ok_or_else(|| failed("the model has no output"))?;
        Ok(Self { model, threads: Arc::clone(threads), output })
    }

    /// A metadata value of the network's file.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.model.metadata().get(key)
    }

    /// Computes the first output from the inputs, in the order of the file.
    pub(crate) fn run(&self, inputs: Vec<ValueOrView<'_>>) -> Result<Tensor<f32>, SenseError> {
        let inputs = self.model.input_ids().iter().copied().zip(inputs).collect();
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let outputs = self.model.run_n(inputs, [self.output], Some(options));
        let [output] = outputs.map_err(|error| failed(format!("the model failed: {error}")))?;
        output.try_into().map_err(|_| failed("the model gave no numbers"))
    }
}

/// The operators that the models use. Others are not linked into the program.
fn operators() -> OpRegistry {
    op_registry!(
        Add,
        AveragePool,
        BatchNormalization,
        Cast,
        Clip,
        Concat,
        Conv,
        ConvTranspose,
        Div,
        Erf,
        Gather,
        Gelu,
        Gemm,
        GlobalAveragePool,
        HardSigmoid,
        Identity,
        LayerNormalization,
        MatMul,
        MaxPool,
        Mul,
        Pow,
        Range,
        ReduceMean,
        ReduceSum,
        Relu,
        Reshape,
        Resize,
        Shape,
        Sigmoid,
        Slice,
        Softmax,
        Sqrt,
        Squeeze,
        Sub,
        Transpose,
        Unsqueeze
    )
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, SenseError> {
    std::fs::read(path).map_err(|error| failed(format!("{}: {error}", path.display())))
}

pub(crate) fn unusable(path: &Path, error: &dyn std::fmt::Display) -> SenseError {
    failed(format!("{} cannot be loaded: {error}", path.display()))
}
